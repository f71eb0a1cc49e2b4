// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/internal/testenv"
)

// show is a run of the gallery.
type show struct {
	name, file string
	kinds      []string // of faults
	args       []string
	needs      func(testing.TB) // what not every machine has
}

func (s show) has(f fault) bool { return slices.Contains(s.kinds, f.kind()) }

// shows are the runs of the gallery: every kind of fault is in one run file, and some are
// run with plain processes too.
var shows = []show{
	{name: "run", file: "run.yaml", kinds: []string{"agent", "setup", "output", "files", "grader", "forged", "provider"}},
	{name: "run-plain", file: "run.yaml", kinds: []string{"agent", "setup", "output", "files", "grader", "forged", "provider"}, args: []string{"--var", "ISOLATION=none"}},
	{name: "limits", file: "limits.yaml", kinds: []string{"limit", "escape"}},
	{name: "python", file: "python.yaml", kinds: []string{"python", "sockets"}, needs: func(t testing.TB) { testenv.Python(t) }},
	{name: "python-plain", file: "python.yaml", kinds: []string{"python", "sockets"}, args: []string{"--var", "ISOLATION=none"}, needs: func(t testing.TB) { testenv.Python(t) }},
	{name: "secrets", file: "secrets.yaml", kinds: []string{"secret"}},
	{name: "scripted", file: "scripted.yaml", kinds: []string{"sandbox"}},
}

// TestFaults runs the gallery as a person would, and compares each trial with what its row
// says. Afterwards nothing of it is left on the machine, and nothing of the host is in the
// store.
func TestFaults(t *testing.T) {
	all := faults(t)
	for _, f := range all {
		if !slices.ContainsFunc(shows, func(s show) bool { return s.has(f) }) {
			t.Errorf("no run has %s", f.ID)
		}
	}
	for _, show := range shows {
		t.Run(show.name, func(t *testing.T) {
			t.Parallel()
			if show.needs != nil {
				show.needs(t)
			}
			host := newHostFile(t)
			key := "key-" + rand.Text()
			data := filepath.Join(t.TempDir(), "data")
			args := []string{"run", "--data", data, "--run-id", show.name, "--slots", "4", filepath.Join(gallery(t), show.file)}
			if show.file == "run.yaml" {
				args = append(args, "--var", "HOST_FILE="+host.path)
			}
			cmd := exec.CommandContext(t.Context(), "tidemill", append(args, show.args...)...)
			cmd.Env = append(os.Environ(), "FAULTS_API_KEY="+key)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			before := lookAround(t)
			err := cmd.Run()
			if cmd.ProcessState.ExitCode() == 2 && strings.Contains(stderr.String(), "can't enforce") {
				t.Skipf("this machine can't enforce what the run asks for: %s", &stderr)
			}
			// 3: finished, with trials that have no score.
			if code := cmd.ProcessState.ExitCode(); code != 0 && code != 3 {
				t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
			}
			store, err := dirstore.Open(data, dirstore.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			keys := bundle.Keys{Run: show.name}
			results := readResults(t, store, keys)
			for _, f := range all {
				if !show.has(f) {
					continue
				}
				t.Run(f.ID, func(t *testing.T) {
					r, ok := results[f.ID]
					if !ok {
						t.Fatal("it did not run")
					}
					f.check(t, store, r)
				})
				testenv.NoLeaks(t, results[f.ID].TrialID, filepath.Join(data, ".tidemill"))
				delete(results, f.ID)
			}
			for id := range results {
				t.Errorf("%s ran, and is another run's", id)
			}
			testenv.NoLeaks(t, data)
			before.compare(t, data)
			nothingOf(t, data, host.marker, key)
			if out := stdout.String() + stderr.String(); strings.Contains(out, key) || strings.Contains(out, host.marker) {
				t.Errorf("the command printed what nobody may see:\n%s", out)
			}
		})
	}
}

// check compares a trial with what its row says.
func (f fault) check(t *testing.T, store bundle.Store, r bundle.Result) {
	o := r.Outcome
	got := seen{
		Status: o.Status, TerminationReason: o.TerminationReason, FailureClass: o.FailureClass,
		Flags: o.Flags, Score: r.Grade.Score, Attempts: r.Attempts, Detail: o.Detail,
	}
	want := f.Expect
	if got.Status != want.Status || got.TerminationReason != want.TerminationReason || got.FailureClass != want.FailureClass ||
		!slices.Equal(got.Flags, want.Flags) || got.Attempts != want.Attempts || !strings.Contains(got.Detail, want.Detail) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if (got.Score == nil) != (want.Score == nil) || got.Score != nil && *got.Score != *want.Score || o.Scored != (want.Score != nil) {
		t.Errorf("score %s, scored %t; want %s", number(got.Score), o.Scored, number(want.Score))
	}
	for _, p := range f.Look {
		key := path.Join(r.Path, p.File)
		body, err := bundle.ReadObject(t.Context(), store, key, 4<<20)
		if err != nil {
			t.Errorf("look into %s: %v", p.File, err)
			continue
		}
		if ok, err := p.in(body); err != nil || !ok {
			t.Errorf("%s doesn't say %q%s (%v):\n%.2000s", p.File, p.Text, p.Hex, err, body)
		}
	}
	if _, err := bundle.Verify(t.Context(), store, r.Path); err != nil {
		t.Errorf("its bundle: %v", err)
	}
}

func number(v *float64) string {
	body, _ := json.Marshal(v)
	return string(body)
}

// readResults returns what became of each task of a run.
func readResults(t *testing.T, store bundle.Store, keys bundle.Keys) map[string]bundle.Result {
	t.Helper()
	results := map[string]bundle.Result{}
	for info, err := range store.List(context.WithoutCancel(t.Context()), keys.Prefix()+"trials/") {
		if err != nil {
			t.Fatal(err)
		}
		if path.Base(info.Key) != "result.json" {
			continue
		}
		body, err := bundle.ReadObject(t.Context(), store, info.Key, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var r bundle.Result
		if err := json.Unmarshal(body, &r); err != nil {
			t.Fatalf("%s: %v", info.Key, err)
		}
		results[r.TaskID] = r
	}
	return results
}

// hostFile is a file of the host that agents link to. What is in it is nowhere else.
type hostFile struct{ path, marker string }

func newHostFile(t *testing.T) hostFile {
	t.Helper()
	h := hostFile{path: filepath.Join(t.TempDir(), "host", "file"), marker: "host-" + rand.Text()}
	if err := os.Mkdir(filepath.Dir(h.path), 0o700); err != nil {
		t.Fatal(err)
	}
	// Beside it, for those who link to the directory. It would even be a good reward.
	for _, path := range []string{h.path, filepath.Join(filepath.Dir(h.path), "other")} {
		if err := os.WriteFile(path, []byte("42\n"+h.marker+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// nothingOf fails for each file of a directory in whose content or name one of the words
// is.
func nothingOf(t *testing.T, dir string, words ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var body []byte
		if d.Type().IsRegular() {
			if body, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		for _, word := range words {
			if bytes.Contains(body, []byte(word)) || strings.Contains(path, word) {
				t.Errorf("%s has %s in it", path, word)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
