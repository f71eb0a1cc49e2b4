// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const regradePack = `version: 1
kind: dataset
name: sums
dataset: {path: rows.jsonl, id_field: id}
agent_fields: [q]
instruction: "what is {{.q}}"
env: {Q: "{{.q}}"}
files: start
setup: {command: [sh, prepare.sh]}
oracle: {command: [sh, solve.sh]}
grade: {command: [sh, grade.sh], timeout: 10s}
artifacts: [answer.txt]
regrade: {from: artifacts}
`

// versionOf makes a pack out of the one above, with these files in place of its own.
func versionOf(t *testing.T, change map[string]string) *Pack {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"pack.yaml": regradePack, "rows.jsonl": `{"id": "one", "q": "1 + 1", "a": "2"}` + "\n" + `{"id": "two", "q": "2 + 2", "a": "5"}` + "\n",
		"tests/grade.sh": "old", "solution/solve.sh": "old", "start/in.txt": "old",
	}
	for name, body := range change {
		files[name] = body
	}
	for name, body := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := OpenPack(dir, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *Pack) taskTwo(t *testing.T) *Task {
	t.Helper()
	refs, err := p.Index(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	task, err := p.Task(refs["two"])
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// What only graders see may differ between two versions of a pack, and nothing else.
func TestForAgent(t *testing.T) {
	edit := func(old, new string) map[string]string {
		return map[string]string{"pack.yaml": strings.Replace(regradePack, old, new, 1)}
	}
	before := versionOf(t, nil).taskTwo(t)
	if before.Regrade != FromArtifacts {
		t.Errorf("regrade %q", before.Regrade)
	}
	for name, c := range map[string]struct {
		change map[string]string
		want   []string
	}{
		"nothing":             {nil, nil},
		"tests":               {map[string]string{"tests/grade.sh": "new"}, nil},
		"grade command":       {edit("[sh, grade.sh]", "[sh, other.sh]"), nil},
		"grade timeout":       {edit("timeout: 10s", "timeout: 1h"), nil},
		"solution":            {map[string]string{"solution/solve.sh": "new"}, nil},
		"a hidden field":      {map[string]string{"rows.jsonl": `{"id": "zero", "q": "0", "a": "0"}` + "\n" + `{"a": "4", "id": "two", "q": "2 + 2"}` + "\n"}, nil},
		"a field of agents":   {map[string]string{"rows.jsonl": `{"id": "two", "q": "2 + 3", "a": "5"}` + "\n"}, []string{"agent_fields", "env", "instruction"}},
		"instruction":         {edit("what is", "what was"), []string{"instruction"}},
		"env":                 {edit("env: {Q:", "env: {P:"), []string{"env"}},
		"starting files":      {map[string]string{"start/in.txt": "new"}, []string{"files"}},
		"no starting files":   {edit("files: start\n", ""), []string{"files"}},
		"setup":               {edit("[sh, prepare.sh]", "[sh, prepare.sh, -x]"), []string{"setup"}},
		"no setup":            {edit("setup: {command: [sh, prepare.sh]}\n", ""), []string{"setup"}},
		"time for the agent":  {edit("artifacts:", "agent_timeout: 1h\nartifacts:"), []string{"agent_timeout"}},
		"regrade":             {edit("regrade: {from: artifacts}\n", ""), nil},
		"category, artifacts": {edit("artifacts: [answer.txt]", "category: maths\nartifacts: []"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := new(TaskDiffer).ForAgent(t.Context(), before, versionOf(t, c.change).taskTwo(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("what differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRegradeKey(t *testing.T) {
	for value, want := range map[string]string{
		"{from: workdir}":             `regrade.from: "workdir" is not known here`,
		"{}":                          "regrade.from: is missing",
		"artifacts":                   "regrade: want keys and values",
		"{from: artifacts, extra: 1}": "regrade.extra: unknown key",
	} {
		dir := versionOf(t, nil).Dir
		body := strings.Replace(regradePack, "regrade: {from: artifacts}", "regrade: "+value, 1)
		if err := os.WriteFile(filepath.Join(dir, "pack.yaml"), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenPack(dir, LoadOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", value, err, want)
		}
	}
}
