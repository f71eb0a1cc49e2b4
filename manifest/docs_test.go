// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every key has a row on its page, and every row a key.
func TestDocsListEveryKey(t *testing.T) {
	for page, keys := range map[string][]string{
		"run-file.md": keyPaths(reflect.TypeFor[Run]()),
		"pack.md":     keyPaths(reflect.TypeFor[packFile]()),
		"harbor.md":   append(keyPaths(reflect.TypeFor[harborFile]()), below("steps", keyPaths(reflect.TypeFor[harborStep]()))...),
	} {
		keys := leaves(keys)
		listed := rowsOf(t, page)
		for _, key := range keys {
			if !slices.Contains(listed, key) {
				t.Errorf("docs/%s: no row for %s", page, key)
			}
		}
		for _, row := range listed {
			if !slices.Contains(keys, row) {
				t.Errorf("docs/%s: a row for %s, which is no key", page, row)
			}
		}
	}
}

func below(key string, paths []string) []string {
	var out []string
	for _, p := range paths {
		out = append(out, join(key, p))
	}
	return out
}

// leaves leaves out keys that only hold others.
func leaves(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return slices.ContainsFunc(paths, func(o string) bool { return strings.HasPrefix(o, p+".") })
	})
}

var keyRow = regexp.MustCompile("^\\| `([a-z_.]+)` \\|")

// rowsOf returns the keys in the tables of a page whose first column is for keys.
func rowsOf(t *testing.T, page string) []string {
	t.Helper()
	var rows []string
	inside := false
	for line := range strings.Lines(readPage(t, page)) {
		switch {
		case strings.HasPrefix(line, "| key |"):
			inside = true
		case !strings.HasPrefix(line, "|"):
			inside = false
		case inside:
			if m := keyRow.FindStringSubmatch(line); m != nil {
				rows = append(rows, m[1])
			}
		}
	}
	return rows
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// fenced returns the first block of a language on a page.
func fenced(t *testing.T, page, language string) string {
	t.Helper()
	_, rest, ok := strings.Cut(readPage(t, page), "\n```"+language+"\n")
	block, _, closed := strings.Cut(rest, "\n```")
	if !ok || !closed {
		t.Fatalf("docs/%s has no block of %s", page, language)
	}
	return block + "\n"
}

func TestDocsHarborExample(t *testing.T) {
	files := small("tasks/one", nil)
	files["run.yaml"] = fenced(t, "harbor.md", "yaml")
	runs, err := Load(filepath.Join(write(t, files), "run.yaml"), LoadOptions{})
	if err != nil || len(runs) != 1 || runs[0].NetworkPolicy != TaskNetwork {
		t.Errorf("%+v, %v", runs, err)
	}
}

// The examples on the pages are right.
func TestDocsExamples(t *testing.T) {
	dir := write(t, map[string]string{
		"run.yaml":               fenced(t, "run-file.md", "yaml"),
		"agent/main.py":          "",
		"pack/pack.yaml":         fenced(t, "pack.md", "yaml"),
		"pack/tasks.jsonl":       `{"id": "easy/1", "question": "1 + 1", "answer": "2"}`,
		"pack/tests/grade.sh":    fenced(t, "pack.md", "sh"),
		"pack/solution/solve.sh": "",
	})
	o := LoadOptions{Vars: map[string]string{"EFFORT": "high"}}
	runs, err := Load(filepath.Join(dir, "run.yaml"), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := UnusedVars(o, runs...); err != nil || len(runs) != 2 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	p := open(t, filepath.Join(dir, "pack"))
	for ref, err := range p.Tasks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		task, err := p.Task(ref)
		if err != nil || task.Steps[0].Instruction != "What is 1 + 1? Write the number into the file answer.txt.\n" {
			t.Errorf("%+v, %v", task, err)
		}
	}
}
