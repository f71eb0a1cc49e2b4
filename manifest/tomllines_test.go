// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTOMLLines(t *testing.T) {
	text := `# comment [x]
a = 1
b.c = "x # y" # z
"quoted \"k" = 'l'
list = [ # [
  1,
  [2, "]"], # ]

  { d = 1, e.f = """
"""},
]
text = """
[not.a.table]
x = 1 \""""
g = '''
'''

[t]
x = {
  y = 1, # a line for each

}
[t.u.v]
w = 1
[[s]]
n = 1
[s.deep]
m = 1
[[s]]
[[s.more]]
o = 1979-05-27 07:32:00
[[s.more]]
p = 1
`
	want := map[string]int{
		"a": 2, "b": 3, "b.c": 3, `quoted "k`: 4, "list": 5, "list[0]": 6, "list[1]": 7, "list[1][0]": 7, "list[1][1]": 7,
		"list[2]": 9, "list[2].d": 9, "list[2].e": 9, "list[2].e.f": 9, "text": 12, "g": 15,
		"t": 18, "t.x": 19, "t.x.y": 20, "t.u": 23, "t.u.v": 23, "t.u.v.w": 24,
		"s": 25, "s[0]": 25, "s[0].n": 26, "s[0].deep": 27, "s[0].deep.m": 28,
		"s[1]": 29, "s[1].more": 30, "s[1].more[0]": 30, "s[1].more[0].o": 31, "s[1].more[1]": 32, "s[1].more[1].p": 33,
	}
	lines, deep := tomlLines([]byte(text))
	if diff := cmp.Diff(want, lines); diff != "" || deep != 0 {
		t.Errorf("deep at %d; lines (-want +got):\n%s", deep, diff)
	}
	for from, to := range map[string]string{"\n": "\r\n", "# comment": byteOrderMark + "# comment"} {
		if again, _ := tomlLines([]byte(strings.ReplaceAll(text, from, to))); !cmp.Equal(again, lines) {
			t.Errorf("with %q for %q: %s", to, from, cmp.Diff(lines, again))
		}
	}
}

func TestTOMLDepth(t *testing.T) {
	for name, deep := range map[string]string{
		"lists": "x = " + strings.Repeat("[", 1<<20), "tables": "x = " + strings.Repeat("{a=", 1<<20),
		"keys": strings.Repeat("a.", 1<<20), "headers": "[" + strings.Repeat("a.", 1<<20),
		"a long name":                strings.Repeat("a", 1<<20) + " = 1",
		"a long name of many tables": "[" + strings.Repeat("a", 1<<20) + "]" + strings.Repeat("\nx=1", 1<<19),
	} {
		deep = "\n" + deep
		c := newCollector("x")
		if root := readTOML(c, []byte(deep)); root != nil || len(c.found) != 1 || c.found[0].Line != 2 {
			t.Errorf("%s: %v", name, c.found)
		}
	}
}

// FuzzHarborTask: whatever a task.toml says, it is a task or refused by name, and the same
// each time.
func FuzzHarborTask(f *testing.F) {
	for _, seed := range []string{
		"", "schema_version = \"1.1\"\nartifacts = [\"/x\", {source = \"a\"}]\n",
		"[environment]\nmemory = \"2G\"\nenv = {A = \"${X_KEY}${Y:-z}\"}\n[environment.healthcheck]\ncommand = \"true\"\n",
		"[[steps]]\nname = \"s\"\nmin_reward = {a = 1}\n[steps.verifier]\nallowed_hosts = [\"a.b\"]\n",
		"a = [[[[\n", "x = {y = 1979-05-27T07:32:00Z, \"z\" = inf}\n[metadata]\nn = nan\n", "\xef\xbb\xbfversion = 1.0",
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	files := small("one", map[string]string{"steps/s/instruction.md": "", "solution/solve.sh": ""})
	for name, body := range files {
		if err := os.MkdirAll(dir+"/"+name[:strings.LastIndexByte(name, '/')], 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name, []byte(body), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	p, err := openHarborPack(dir, dir, harborTasks, LoadOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, again := p.parse("one", data), p.parse("one", data)
		problems := l.problems()
		if diff := cmp.Diff(problems, again.problems()); diff != "" {
			t.Fatalf("another time: %s", diff)
		}
		lines := strings.Count(string(data), "\n") + 1
		for _, problem := range append(problems, l.task.Warnings...) {
			if problem.File == "" || problem.Text == "" || problem.Line < 0 || problem.Line > lines {
				t.Errorf("of %d lines: %+v", lines, problem)
			}
		}
		if len(problems) > 0 {
			return
		}
		if diff := cmp.Diff(l.task, again.task); diff != "" {
			t.Errorf("another time: %s", diff)
		}
		if l.task.ID == "" || len(l.task.Steps) == 0 || len(l.task.Network) != 3 {
			t.Errorf("task %+v", l.task)
		}
		for _, s := range l.task.Steps {
			if len(s.Grade.Command) == 0 || s.Grade.Timeout <= 0 {
				t.Errorf("step %+v", s)
			}
		}
	})
}
