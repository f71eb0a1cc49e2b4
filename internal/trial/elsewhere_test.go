// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime/scripted"
)

// collected are the files below artifacts, and what was left out with the reason.
func (r result) collected(t *testing.T) (kept map[string]string, skipped map[string]string) {
	t.Helper()
	kept, skipped = map[string]string{}, map[string]string{}
	for name, body := range r.files {
		if rest, ok := strings.CutPrefix(name, "artifacts/"); ok {
			kept[rest] = body
		}
	}
	for _, s := range r.listed(t).Skipped {
		skipped[s.Path] = s.Reason
	}
	return kept, skipped
}

func TestCollectElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		agent   []string
		sources []manifest.Collect
		kept    map[string]string
		skipped map[string]string
		source  string // of the only file
	}{
		"a file of the workdir by its path": {
			agent: argv("write greet.sh hi"), sources: []manifest.Collect{{Source: "/app/greet.sh"}},
			kept: map[string]string{"collected/greet.sh": "hi"}, source: "workdir/greet.sh",
		},
		"a file of the workdir": {
			agent: argv("mkdir sub", "write sub/a 1"), sources: []manifest.Collect{{Source: "sub/a"}},
			kept: map[string]string{"collected/a": "1"}, source: "workdir/sub/a",
		},
		"a file elsewhere": {
			agent: argv("mkdir /var/log", "write /var/log/app.log up"), sources: []manifest.Collect{{Source: "/var/log/app.log"}},
			kept: map[string]string{"collected/app.log": "up"}, source: "/var/log/app.log",
		},
		"a file in a place": {
			agent: argv("write agent/notes.txt n"), sources: []manifest.Collect{{Source: "/logs/agent/notes.txt"}},
			kept: map[string]string{"collected/notes.txt": "n"},
		},
		"a directory": {
			agent:   argv("mkdir /srv/data/deep", "write /srv/data/a 1", "write /srv/data/deep/b 2", "write /srv/database x"),
			sources: []manifest.Collect{{Source: "/srv/data/"}},
			kept:    map[string]string{"collected/data/a": "1", "collected/data/deep/b": "2"},
		},
		"the whole workdir": {
			agent: argv("write a 1"), sources: []manifest.Collect{{Source: "/app"}, {Source: ".", Destination: "again"}},
			kept: map[string]string{"collected/app/a": "1", "collected/again/a": "1"},
		},
		"under another name": {
			agent: argv("write a 1"), sources: []manifest.Collect{{Source: "/app/a", Destination: "results/first.txt"}, {Source: "/app", Destination: "all"}},
			kept: map[string]string{"collected/results/first.txt": "1", "collected/all/a": "1"},
		},
		"what isn't there": {
			sources: []manifest.Collect{{Source: "/app/none"}, {Source: "/nowhere/at/all"}, {Source: "none.txt"}},
			skipped: map[string]string{
				"workdir/none": "there is no such file", "/nowhere/at/all": "there is no such file", "workdir/none.txt": "there is no such file",
			},
		},
		"the whole file system": {
			sources: []manifest.Collect{{Source: "/"}},
			skipped: map[string]string{"/": "it is the whole file system; name a directory below it"},
		},
		"a symlink": {
			agent: argv("write a 1", "symlink /app/a link", "mkdir dir", "symlink /app/a dir/link"), sources: []manifest.Collect{{Source: "link"}, {Source: "dir"}},
			skipped: map[string]string{"workdir/link": "symlink to /app/a", "workdir/dir/link": "symlink to /app/a"},
		},
		"behind a symlink": {
			agent: argv("mkdir /srv", "write /srv/a 1", "symlink /srv /var"), sources: []manifest.Collect{{Source: "/var/a"}},
			skipped: map[string]string{"/var/a": "is a symlink, and symlinks are not followed"},
		},
		"too large": {
			agent:   argv("write small 1", "big-file /big 5000000000", "mkdir /many", "big-file /many/a 800", "big-file /many/b 800"),
			sources: []manifest.Collect{{Source: "/big"}, {Source: "/many"}, {Source: "small"}},
			kept:    map[string]string{"collected/many/a": strings.Repeat("\x00", 800), "collected/small": "1"},
			skipped: map[string]string{
				"/big": "larger than what is left of capture.max_artifact_bytes", "/many/b": "beyond the limit of 1000 bytes in all",
			},
		},
		"two of a name": {
			agent: argv("mkdir /x", "write /x/a 1", "write a 2"), sources: []manifest.Collect{{Source: "/x/a"}, {Source: "a"}},
			kept: map[string]string{"collected/a": "1"}, skipped: map[string]string{"workdir/a": "the bundle can't hold that name"},
		},
		"beside what the agent left": {
			agent:   argv("write a 1", "write artifacts/a 2", "mkdir artifacts/collected", "write artifacts/collected/a 3"),
			sources: []manifest.Collect{{Source: "a"}},
			kept:    map[string]string{"collected/a": "1", "a": "2", "artifacts/collected/a": "3"},
		},
		"a destination that leaves": {
			agent: argv("write a 1"), sources: []manifest.Collect{{Source: "a", Destination: "../../../task.yaml"}},
			kept: map[string]string{"collected/task.yaml": "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.Task.Workdir, j.Task.Collect = "/app", c.sources
			j.Run.Run.Capture.MaxArtifactBytes = 1000
			j.agent(append(argv("print working"), c.agent...)...)
			got := j.run(t, t.Context())
			if got.Ending != trial.Graded || slices.Contains(got.Outcome.Flags, trial.FlagCollection) {
				t.Fatalf("%+v", got.Outcome)
			}
			kept, skipped := got.collected(t)
			if c.kept == nil {
				c.kept = map[string]string{}
			}
			equal(t, "kept", c.kept, kept)
			for path, why := range c.skipped {
				if !strings.HasPrefix(skipped[path], why) {
					t.Errorf("%s was left out for %q, want %q", path, skipped[path], why)
				}
				delete(skipped, path)
			}
			equal(t, "left out", map[string]string{}, skipped)
			if list := got.listed(t); c.source != "" {
				equal(t, "source", c.source, list.Kept[0].Source)
			}
		})
	}
}

// What is kept of each step is what was there at its end.
func TestCollectAfterEachStep(t *testing.T) {
	j := multi(
		t,
		step("scaffold", `["write greet.sh one","write artifacts/marker 1"]`, "write verifier/reward.txt 1"),
		step("implement", `["write greet.sh two"]`, "write greet.sh three", "write verifier/reward.txt 1"),
		step("document", `["write README.md doc"]`, "write verifier/reward.txt 1"),
	)
	j.Task.Workdir, j.Task.Collect = "/app", []manifest.Collect{{Source: "/app/greet.sh"}}
	j.Task.Steps[2].Collect = []manifest.Collect{{Source: "/app/README.md"}}
	got := j.run(t, t.Context())
	kept, skipped := got.collected(t)
	equal(t, "kept", map[string]string{
		"steps/1-scaffold/collected/greet.sh": "one", "steps/1-scaffold/marker": "1",
		"steps/2-implement/collected/greet.sh": "three",
		"steps/3-document/collected/greet.sh":  "three", "steps/3-document/collected/README.md": "doc",
	}, kept)
	equal(t, "left out", map[string]string{}, skipped)
}

// Sandboxes without a file system of their own give what their places hold.
func TestCollectWithoutARoot(t *testing.T) {
	some := scripted.Everything()
	some.Images = false
	j := newJob(t)
	j.rt = scripted.New(scripted.Config{Provider: j.provider, Properties: &some})
	j.Task.Collect = []manifest.Collect{{Source: "out.txt"}, {Source: "/var/log"}}
	got := j.run(t, t.Context())
	kept, skipped := got.collected(t)
	equal(t, "kept", map[string]string{"collected/out.txt": "hello"}, kept)
	equal(t, "left out", map[string]string{"/var/log": "runtime scripted can't enforce place root"}, skipped)
}

// What was kept from anywhere can't be put back.
func TestCollectedElsewhereCantBeGradedAgain(t *testing.T) {
	task := manifest.Task{Regrade: manifest.FromArtifacts, Steps: make([]manifest.Step, 1)}
	if why, _ := trial.TaskRegradable(&manifest.Run{}, &task); why != "" {
		t.Fatalf("without it: %s", why)
	}
	own := task
	own.Regrade, own.Image = "", "debian:12"
	if why, _ := trial.TaskRegradable(&manifest.Run{}, &own); !strings.Contains(why, "container of the task's own") {
		t.Errorf("a container of its own: %q", why)
	}
	task.Steps[0].Collect = []manifest.Collect{{Source: "/a"}}
	if why, fix := trial.TaskRegradable(&manifest.Run{}, &task); !strings.Contains(why, "outside of the workdir") || fix == "" {
		t.Errorf("%q, %q", why, fix)
	}
}
