// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

func TestLoadGolden(t *testing.T) {
	repo, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"full", "small"} {
		t.Run(name, func(t *testing.T) {
			runs, err := Load("testdata/runs/"+name+".yaml", LoadOptions{Vars: map[string]string{"REPEATS": "4"}})
			if err != nil {
				t.Fatal(err)
			}
			data, err := yaml.Marshal(runs)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/runs/"+name+".golden", strings.ReplaceAll(string(data), repo, "$REPO"))
		})
	}
}

// A loaded run goes into run.yaml and comes out of it unchanged.
func TestRunRoundTrip(t *testing.T) {
	runs, err := Load("testdata/runs/full.yaml", LoadOptions{Vars: map[string]string{"REPEATS": "4"}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := yaml.Marshal(RunRecord{RunID: "x", Run: *runs[0]})
	if err != nil {
		t.Fatal(err)
	}
	var back RunRecord
	if err := yaml.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	again, err := yaml.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(again)); diff != "" {
		t.Errorf("run.yaml (-first +second):\n%s", diff)
	}
	if a, b := digestOf(runs[0]), digestOf(&back.Run); a != b {
		t.Errorf("digest changed from %s to %s", a, b)
	}
}

func TestMatrixOrder(t *testing.T) {
	runs, err := Load("testdata/runs/full.yaml", LoadOptions{Vars: map[string]string{"REPEATS": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range runs {
		got = append(got, r.Agent.Command[3]+" "+r.Agent.Env["TEMPERATURE"])
		if v, _ := r.PackOptions(LoadOptions{}).lookup("MODEL"); v != r.Agent.Command[3] {
			t.Errorf("packs see MODEL=%q, want %q", v, r.Agent.Command[3])
		}
	}
	if diff := cmp.Diff([]string{"small 0", "small 0.5", "large 0", "large 0.5"}, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestLoadMissing(t *testing.T) {
	if _, err := Load("testdata/nowhere.yaml", LoadOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v, want fs.ErrNotExist", err)
	}
	if _, err := Load("testdata", LoadOptions{}); err == nil {
		t.Error("a directory was loaded")
	}
}

func TestRuntimesOption(t *testing.T) {
	_, err := Load("testdata/runs/small.yaml", LoadOptions{Runtimes: []RuntimeType{{Name: "subprocess"}, {Name: "scripted"}}})
	if want := `testdata/runs/small.yaml:6: runtime.type: "docker" is not known here; use one of subprocess, scripted`; err == nil || err.Error() != want {
		t.Errorf("err = %v\nwant %s", err, want)
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/runs/*.yaml", "testdata/problems/*.txtar"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		runs, err := Parse("testdata/runs/fuzz.yaml", data, LoadOptions{Vars: map[string]string{"REPEATS": "1"}})
		if (err == nil) != (len(runs) > 0) {
			t.Fatalf("%d runs and error %v", len(runs), err)
		}
		if ps := Problems(nil); err != nil && !errors.As(err, &ps) {
			t.Fatalf("not problems: %v", err)
		}
		for _, r := range runs {
			if _, err := yaml.Marshal(RunRecord{Run: *r}); err != nil {
				t.Fatalf("can't be stored: %v", err)
			}
			digestOf(r)
		}
	})
}
