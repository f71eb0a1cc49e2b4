// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"path/filepath"
	"testing"
)

// Harbor tasks say themselves what they may reach, so a run of them alone leaves it to them
// unless it says otherwise.
func TestNetworkOfHarborRuns(t *testing.T) {
	files := map[string]string{
		"native/pack.yaml":  "version: 1\nkind: dataset\ndataset: {path: rows.jsonl, id_field: id}\ninstruction: x\ngrade: {command: [x]}\n",
		"native/rows.jsonl": `{"id": "a"}`,
	}
	maps.Copy(files, small("tasks/one", nil))
	dir := write(t, files)
	for _, test := range []struct{ packs, more, want string }{
		{"[tasks]", "runtime: {type: docker}", TaskNetwork},
		{"[tasks/one]", "runtime: {type: docker}", TaskNetwork},
		{"[tasks, native]", "runtime: {type: docker}", "no_internet"},
		{"[native]", "runtime: {type: docker}", "no_internet"},
		{"[native]", "runtime: {type: docker}\nnetwork_policy: task", TaskNetwork},
		{"[tasks]", "runtime: {type: docker}\nnetwork_policy: no_internet", "no_internet"},
		{"[tasks]", "runtime: {type: subprocess}\nnetwork_policy: full_internet", "full_internet"},
	} {
		text := "version: 1\nname: x\nagent: {name: nop}\npacks: " + test.packs + "\n" + test.more + "\n"
		runs, err := Parse(filepath.Join(dir, "run.yaml"), []byte(text), LoadOptions{})
		if err != nil || runs[0].NetworkPolicy != test.want {
			t.Errorf("packs %s, %s: %+v, %v; want %s", test.packs, test.more, runs, err, test.want)
		}
	}
	text := "version: 1\nname: x\nagent: {name: nop}\npacks: [tasks]\nruntime: {type: subprocess}\n"
	if _, err := Parse(filepath.Join(dir, "run.yaml"), []byte(text), LoadOptions{}); err == nil {
		t.Error("a subprocess run was given a network that it doesn't name")
	}
}

// A variable that only a task.toml uses is used.
func TestHarborUses(t *testing.T) {
	files := small("tasks/one", map[string]string{"task.toml": "[environment.env]\nA = \"${EFFORT}\"\n"})
	files["run.yaml"] = "version: 1\nname: x\nagent: {name: nop}\npacks: [tasks]\nruntime: {type: docker}\nmatrix: {EFFORT: [low, high]}\n"
	o := LoadOptions{Vars: map[string]string{"OTHER": "x"}}
	runs, err := Load(filepath.Join(write(t, files), "run.yaml"), o)
	if err != nil || len(runs) != 2 {
		t.Fatalf("%v, %v", runs, err)
	}
	if err := UnusedVars(o, runs...); err == nil {
		t.Error("a variable that nothing uses was let pass")
	}
	sums := map[string]bool{}
	for _, run := range runs {
		p, err := OpenPack(run.Packs[0], run.PackOptions(o))
		if err != nil {
			t.Fatal(err)
		}
		_, task := only(t, p)
		_, sum := unpacked(t, p)
		sums[task.Env["A"]+sum] = true
		if task.Env["A"] != run.Values()["EFFORT"] || len(task.Warnings) > 0 {
			t.Errorf("%v, %v", task.Env, task.Warnings)
		}
	}
	if len(sums) != 2 {
		t.Error("two values of a variable have one digest")
	}
}
