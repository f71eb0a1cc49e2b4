// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestProblems loads every file of testdata/problems and compares all that is said
// about it with its section "want".
func TestProblems(t *testing.T) {
	files, err := filepath.Glob("testdata/problems/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			path, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			want := ""
			inputs := &txtar.Archive{Comment: archive.Comment}
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
				} else {
					inputs.Files = append(inputs.Files, f)
				}
			}
			if err := txtar.Write(inputs, dir); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			got := strings.ReplaceAll(said(t), dir, "$DIR")
			if got == "" {
				t.Error("nothing was said")
			}
			if *update {
				inputs.Files = append(inputs.Files, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(inputs), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
		})
	}
}

// said loads run.yaml, or else the pack and its rows, and returns the problems.
func said(t *testing.T) string {
	o := LoadOptions{
		Vars:      map[string]string{"GIVEN": "is-given"},
		LookupEnv: func(name string) (string, bool) { return "hush-hush-hush", name == "SOME_API_KEY" || name == "LISTED" },
	}
	var errs []string
	note := func(err error) {
		var p Problem
		if !errors.As(err, &p) {
			t.Errorf("not a problem: %v", err)
		}
		errs = append(errs, err.Error())
	}
	if _, err := os.Stat("run.yaml"); err == nil {
		if _, err := Load("run.yaml", o); err != nil {
			note(err)
		}
	} else if p, err := OpenPack("pack", o); err != nil {
		note(err)
	} else {
		for ref, err := range p.Tasks(t.Context()) {
			if err != nil {
				note(err)
				continue
			}
			task, err := p.Task(ref)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range task.Warnings {
				errs = append(errs, "warning: "+w.Error())
			}
		}
	}
	if len(errs) == 0 {
		return ""
	}
	return strings.Join(errs, "\n") + "\n"
}
