// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Values of variables are found where the pack is archived; those of secrets on the worker,
// and nowhere else.
func TestHarborVariables(t *testing.T) {
	dir := write(t, small("one", map[string]string{"task.toml": `
[environment.env]
PLAIN = "costs $5, $${NOT}"
FROM_HOST = "<${HOST_VALUE}>"
BY_DEFAULT = "${NOT_SET:-fallback}"
MODEL_KEY = "${SOME_API_KEY}"
[verifier.env]
URL = "https://x?key=${JUDGE_API_KEY:-none}&a=$$&host=${HOST_VALUE}"
LISTED = "${OURS}"
[solution.env]
KEY = "${SOME_API_KEY}"
`, "solution/solve.sh": ""}))
	values := map[string]string{"HOST_VALUE": "$a", "SOME_API_KEY": "must not be read", "JUDGE_API_KEY": "nor this", "OURS": "nor that"}
	run := &Run{TaskSecrets: []string{"OURS"}}
	p, err := OpenPack(dir, run.PackOptions(LoadOptions{LookupEnv: func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}}))
	if err != nil {
		t.Fatal(err)
	}
	there, sum := unpacked(t, p)
	if again, err := there.Archive(t.Context(), nil); err != nil || again != sum {
		t.Errorf("archived again: %s, %v; want %s", again, err, sum)
	}
	body, err := os.ReadFile(filepath.Join(there.Dir, harborVariablesFile))
	if want := "{\n  \"values\": {\n    \"HOST_VALUE\": \"$a\"\n  },\n  \"secrets\": [\n    \"OURS\"\n  ]\n}"; err != nil || string(body) != want {
		t.Errorf("the archive has %s, %v", body, err)
	}
	_, here := only(t, p)
	_, task := only(t, there)
	if len(here.Warnings) != 2 || len(task.Warnings) != 0 {
		t.Errorf("warnings %v here, %v there", here.Warnings, task.Warnings)
	}
	for _, x := range []*Task{here, task} {
		if want := map[string]string{"PLAIN": "costs $5, ${NOT}", "FROM_HOST": "<$a>", "BY_DEFAULT": "fallback"}; !maps.Equal(x.Env, want) {
			t.Errorf("env %v", x.Env)
		}
	}
	all, needed := task.Secrets()
	if !slices.Equal(all, []string{"JUDGE_API_KEY", "OURS", "SOME_API_KEY"}) || !slices.Equal(needed, []string{"OURS", "SOME_API_KEY"}) {
		t.Errorf("secrets %v, needed %v", all, needed)
	}

	filled, used, missing := task.WithSecrets(map[string]string{"SOME_API_KEY": "k${1}$$", "OURS": ""})
	if !slices.Equal(used, []string{"k${1}$$"}) || !slices.Equal(missing, []string{"OURS"}) {
		t.Errorf("used %v, missing %v", used, missing)
	}
	if filled.Env["MODEL_KEY"] != "k${1}$$" || filled.Env["FROM_HOST"] != "<$a>" || filled.Steps[0].Oracle.Env["KEY"] != "k${1}$$" {
		t.Errorf("filled %v", filled.Env)
	}
	if got := filled.Steps[0].Grade.Env; got["URL"] != "https://x?key=none&a=$&host=$a" || got["LISTED"] != "" {
		t.Errorf("the grader gets %v", got)
	}
	if all, _ := filled.Secrets(); len(all) > 0 || task.Env["MODEL_KEY"] != "" || task.Steps[0].Oracle.Env["KEY"] != "" {
		t.Error("the task itself was changed, or its copy asks again")
	}
	plain := &Task{Steps: make([]Step, 1)}
	if same, _, _ := plain.WithSecrets(nil); same != plain {
		t.Error("a task without secrets was copied")
	}
}

// What a step says goes before what the task says, whichever of them has the secret.
func TestHarborStepEnv(t *testing.T) {
	dir := write(t, small("one", map[string]string{"steps/s/instruction.md": "", "task.toml": `
[verifier.env]
A = "plain"
B = "${SOME_API_KEY}"
C = "stays"
[[steps]]
name = "s"
[steps.verifier.env]
A = "${SOME_API_KEY}"
B = "plain"
`}))
	_, task := only(t, open(t, dir))
	g := task.Steps[0].Grade
	if !maps.Equal(g.Env, map[string]string{"B": "plain", "C": "stays"}) || !maps.Equal(g.SecretEnv, map[string]string{"A": "${SOME_API_KEY}"}) {
		t.Errorf("%v, %v", g.Env, g.SecretEnv)
	}
}
