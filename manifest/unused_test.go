// SPDX-License-Identifier: Apache-2.0

package manifest

import "testing"

// A variable counts as used wherever it is used: in any of the run files, in a pack, in a
// matrix, or with a default.
func TestUnusedVars(t *testing.T) {
	dir := write(t, map[string]string{
		"one.yaml": "version: 1\nname: one\npacks: [pack]\nmatrix: {M: [\"${IN_MATRIX}\"]}\n" +
			"agent: {name: nop, env: {M: \"${M}\", D: \"${DEFAULTED:-x}\"}}\nruntime: {type: docker}\n",
		"two.yaml":       "version: 1\nname: \"${TWO}\"\npacks: [pack]\nagent: {name: nop}\nruntime: {type: docker}\n",
		"pack/pack.yaml": "version: 1\nkind: dataset\ndataset: {path: \"${ROWS}\", id_field: id}\n",
	})
	vars := map[string]string{"IN_MATRIX": "a", "DEFAULTED": "b", "TWO": "two", "ROWS": "rows.jsonl"}
	load := func(more ...string) error {
		t.Helper()
		o := LoadOptions{Vars: map[string]string{}}
		for k, v := range vars {
			o.Vars[k] = v
		}
		for _, name := range more {
			o.Vars[name] = "x"
		}
		one, err := Load(dir+"/one.yaml", o)
		if err != nil {
			t.Fatal(err)
		}
		two, err := Load(dir+"/two.yaml", o)
		if err != nil {
			t.Fatal(err)
		}
		return UnusedVars(o, append(one, two...)...)
	}
	if err := load(); err != nil {
		t.Errorf("all are used: %v", err)
	}
	const want = "variable OTHER: nothing uses ${OTHER}; leave it out, or use it in a run file or pack\n" +
		"variable ROW: nothing uses ${ROW}; did you mean ROWS?"
	if err := load("ROW", "OTHER"); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestNearest(t *testing.T) {
	keys := []string{"repeats", "retry", "pass_threshold", "cpus", "HumanEval/0", "HumanEval/16"}
	for word, want := range map[string]string{
		"repeat": "repeats", "RETRY": "retry", "pass": "pass_threshold", "cpu": "cpus", "gpu": "", "max": "", "re": "",
		"rehearse": "", "HumanEval/00": "HumanEval/0", "repeats_per_task": "repeats", "": "", "instructions": "",
	} {
		if got := nearest(word, keys); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestGlobLiteral(t *testing.T) {
	for glob, want := range map[string]string{
		"HumanEval/0": "HumanEval/0", `a\*b\\`: `a*b\`, "a*": "-", "a?": "-", "[ab]": "-", `a\`: "-",
	} {
		if got, ok := GlobLiteral(glob); (ok && got != want) || ok == (want == "-") {
			t.Errorf("GlobLiteral(%q) = %q, %t", glob, got, ok)
		}
	}
}
