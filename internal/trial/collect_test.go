// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/trial"
)

// listed is artifacts.json.
type listed struct {
	Kept    []struct{ Path, Source string }
	Skipped []struct {
		Path, Reason string
		Bytes        int64
	}
	SkippedTotal int `json:"skipped_total"`
}

func (r result) listed(t *testing.T) (l listed) {
	t.Helper()
	body, ok := r.files["artifacts.json"]
	if !ok {
		return l
	}
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// kept are the files that don't come from us.
func (r result) kept() map[string]string {
	out := maps.Clone(r.files)
	for _, ours := range []string{
		"task.yaml", "trajectory.yaml", "metrics.yaml", "grade.yaml", "env.yaml", "artifacts.json", "logs/agent.log", "logs/grader.log",
	} {
		delete(out, ours)
	}
	return out
}

// Whatever names programs choose, nothing meets, nothing is lost silently, and the
// verdict stands.
func TestCollectedNames(t *testing.T) {
	j := newJob(t)
	j.Run.Run.Capture.Artifacts = []string{"out.txt", "deep/*.log"}
	j.agent("write out.txt hello",
		"write /logs/agent.log not ours", "mkdir /logs/grader.log", "write /logs/grader.log/x not ours either",
		"write agent/agent.log third", "mkdir agent/deep/er", "write agent/deep/er/x 1",
		"write artifacts/a.txt a", "mkdir artifacts/workdir", "write artifacts/workdir/out.txt other",
		"mkdir artifacts/artifacts/workdir", "write artifacts/artifacts/workdir/out.txt another",
		"write artifacts/steps s", `write "artifacts/ü \n\xff~" odd`,
		"symlink /etc/passwd artifacts/passwd", "symlink / artifacts/everything", "fifo artifacts/pipe",
		"mkdir ./deep/in", "write deep/one.log 1", "write deep/in/two.log 2", "write deep/no.txt 3", "fifo deep/pipe", "fifo deep/pipe.log",
	)
	got := j.run(t, t.Context())
	if !got.Grade.BinaryPass || got.Outcome.Flags != nil {
		t.Errorf("%+v", got.Outcome)
	}
	equal(t, "kept", map[string]string{
		"logs/files/agent.log": "not ours", "logs/files/grader.log/x": "not ours either",
		"logs/agent/agent.log": "third", "logs/agent/deep/er/x": "1",
		"artifacts/a.txt": "a", "artifacts/artifacts/workdir/out.txt": "other", "artifacts/artifacts/artifacts/workdir/out.txt": "another",
		"artifacts/artifacts/steps": "s", "artifacts/ü \n\xff~": "odd",
		"artifacts/workdir/out.txt": "hello", "artifacts/workdir/deep/one.log": "1", "artifacts/workdir/deep/in/two.log": "2",
	}, got.kept())
	l := got.listed(t)
	var skipped []string
	for _, s := range l.Skipped {
		skipped = append(skipped, s.Path+": "+s.Reason)
	}
	slices.Sort(skipped)
	equal(t, "skipped", []string{
		"logs/artifacts/everything: symlink to /", "logs/artifacts/passwd: symlink to /etc/passwd", "logs/artifacts/pipe: fifo", "workdir/deep/pipe.log: fifo",
	}, skipped)
	if len(l.Kept) != 12 || l.SkippedTotal != len(l.Skipped) {
		t.Errorf("%d kept, %d skipped in all", len(l.Kept), l.SkippedTotal)
	}
}

// A pattern that names a directory means all that is below it, and one that found nothing
// is said.
func TestCollectedPatterns(t *testing.T) {
	for name, c := range map[string]struct {
		globs  []string
		kept   []string // below artifacts/workdir
		missed []string
	}{
		"a directory":             {globs: []string{"out"}, kept: []string{"out/a", "out/in/b"}},
		"with a slash":            {globs: []string{"./out/"}, kept: []string{"out/a", "out/in/b"}},
		"directories by a glob":   {globs: []string{"ou?/i*"}, kept: []string{"out/in/b"}},
		"everything":              {globs: []string{"."}, kept: []string{"out/a", "out/in/b", "outer", "out.txt"}},
		"an empty directory":      {globs: []string{"empty"}, missed: []string{"workdir/empty"}},
		"nothing":                 {globs: []string{"answer.txt", "*.log", "answer.txt"}, missed: []string{"workdir/*.log", "workdir/answer.txt"}},
		"one of two":              {globs: []string{"out.txt", "out.tx"}, kept: []string{"out.txt"}, missed: []string{"workdir/out.tx"}},
		"one file, two patterns":  {globs: []string{"out.txt", "*.txt"}, kept: []string{"out.txt"}},
		"what isn't kept is said": {globs: []string{"pipe"}, missed: nil},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.Task.Artifacts = c.globs
			j.agent("mkdir ./out/in", "write out/a 1", "write out/in/b 2", "write outer 3", "mkdir ./empty", "write out.txt hello", "fifo pipe")
			got := j.run(t, t.Context())
			want := map[string]string{}
			for _, k := range c.kept {
				want["artifacts/workdir/"+k] = ""
			}
			kept := got.kept()
			for k := range kept {
				kept[k] = ""
			}
			equal(t, "kept", want, kept)
			var missed []string
			for _, s := range got.listed(t).Skipped {
				if s.Reason == "no file matches" {
					missed = append(missed, s.Path)
				}
			}
			slices.Sort(missed)
			equal(t, "missed", c.missed, missed)
			if !got.Grade.BinaryPass || got.Outcome.Flags != nil {
				t.Errorf("%+v", got.Outcome)
			}
		})
	}
}

// Directories that a program replaced are said, and not followed.
func TestReplacedPlaces(t *testing.T) {
	j := newJob(t)
	j.Run.Run.Capture.Artifacts = []string{"data/*", "out.txt"}
	j.agent("write out.txt hello", "symlink / data")
	j.grader("judge out.txt hello")
	got := j.run(t, t.Context())
	equal(t, "kept", map[string]string{"artifacts/workdir/out.txt": "hello"}, got.kept())
	if !got.Grade.BinaryPass {
		t.Errorf("%+v", got.Outcome)
	}
	// All logs replaced, after the verdict was given.
	j = newJob(t)
	j.grader("judge out.txt hello", "rename /logs/verifier /kept", "remove /logs", "symlink / /logs", "write /verifier x")
	if got = j.run(t, t.Context()); got.Ending != trial.GraderFailed {
		t.Errorf("%+v", got.Outcome)
	}
	if l := got.listed(t); len(l.Skipped) != 1 || l.Skipped[0].Path != "logs" {
		t.Errorf("skipped %+v", l.Skipped)
	}
}

func TestCollectionLimits(t *testing.T) {
	j := newJob(t)
	j.Run.Run.Capture.MaxArtifactBytes, j.Run.Run.Capture.MaxArtifacts = 10, 3
	j.Run.Run.Capture.Artifacts = []string{"*.txt", "*.bin"}
	j.agent("write out.txt hello",
		"write artifacts/a 123456", "write artifacts/b 12345", "big-file artifacts/c 9000000000", "write artifacts/d 12", "write artifacts/e 1", "write artifacts/f 1",
		"big-file z.bin 9000000000", "big-file other 9000000000")
	got := j.run(t, t.Context())
	equal(t, "kept", map[string]string{"artifacts/a": "123456", "artifacts/d": "12", "artifacts/e": "1"}, got.kept())
	var skipped []string
	for _, s := range got.listed(t).Skipped {
		skipped = append(skipped, fmt.Sprintf("%s (%d): %s", s.Path, s.Bytes, s.Reason))
	}
	equal(t, "skipped", []string{
		"logs/artifacts/b (5): larger than what is left of capture.max_artifact_bytes",
		"logs/artifacts/f (1): more files than capture.max_artifacts",
		"logs/artifacts/c (9000000000): larger than what is left of capture.max_artifact_bytes",
		"workdir/out.txt (5): larger than what is left of capture.max_artifact_bytes",
		"workdir/z.bin (9000000000): larger than what is left of capture.max_artifact_bytes",
	}, skipped)
	if !got.Grade.BinaryPass || got.Outcome.Flags != nil {
		t.Errorf("%+v", got.Outcome)
	}
}

// An agent that fills the log directories takes no room from the grader's files.
func TestGraderFilesHaveRoomOfTheirOwn(t *testing.T) {
	j := newJob(t)
	j.Run.Run.Capture.MaxArtifactBytes, j.Run.Run.Capture.MaxArtifacts = 10, 2
	j.agent("write out.txt hello", "write agent/a 1", "write agent/b 1", "write agent/c 1")
	j.grader("judge out.txt hello", "write verifier/report.txt because-it-is-so")
	got := j.run(t, t.Context())
	equal(t, "kept", map[string]string{"logs/agent/a": "1", "logs/agent/b": "1", "logs/verifier/report.txt": "because-it-is-so"}, got.kept())
	if l := got.listed(t); len(l.Skipped) != 1 || l.Skipped[0].Path != "logs/agent/c" {
		t.Errorf("skipped %+v", l.Skipped)
	}
}

// The sandbox dies while its evidence is collected: that is trouble of ours.
func TestLostInCollection(t *testing.T) {
	j := newJob(t)
	env, err := j.rt.Prepare(t.Context(), trial.RunSpec(j.Run.Run, "", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	j.Environment = env
	j.OnPhase = func(phase string) {
		if phase == trial.PhaseCollect {
			list, err := j.rt.List(t.Context())
			if err != nil || len(list) != 1 {
				t.Fatalf("%v, %v", list, err)
			}
			if err := j.rt.Destroy(t.Context(), list[0].Handle); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := j.run(t, t.Context())
	if got.Ending != trial.SandboxLost || got.Outcome.Phase != trial.PhaseCollect || got.Grade.Score != nil {
		t.Errorf("%+v, grade %+v", got.Outcome, got.Grade)
	}
	equal(t, "flags", []string{trial.FlagCollection}, got.Outcome.Flags)
}

// full is a disk of ours on which some files can't be written.
type full struct{ broken string }

var errFull = errors.New("no space left on device")

func (f full) Create(name string) (io.WriteCloser, error) {
	if strings.HasPrefix(name, f.broken+"!") || name == f.broken {
		return nil, errFull
	}
	return sink{broken: name == strings.TrimSuffix(f.broken, "+")}, nil
}

type sink struct{ broken bool }

func (s sink) Write(p []byte) (int, error) {
	if s.broken {
		return 0, errFull
	}
	return len(p), nil
}
func (sink) Close() error { return nil }

// What can't be written here is trouble of ours, wherever it happens: no verdict
// without its evidence.
func TestOurDiskIsFull(t *testing.T) {
	for _, name := range []string{
		"logs/agent.log", "logs/agent.log+", "logs/grader.log", "logs/grader.log+", "artifacts/a", "artifacts/a+",
		"task.yaml", "trajectory.yaml+", "metrics.yaml", "grade.yaml", "env.yaml+", "artifacts.json",
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.files = full{name}
			j.agent("write out.txt hello", "write artifacts/a x", "print output")
			j.grader("print output", "judge out.txt hello")
			got := j.run(t, t.Context())
			if got.Ending != trial.InfraFailed || got.Grade.Scored || got.Grade.Score != nil || got.Outcome.Scored {
				t.Errorf("%+v, grade %+v", got.Outcome, got.Grade)
			}
			if !strings.Contains(got.Outcome.Detail, errFull.Error()) || got.Metrics.Error != "infra_error" {
				t.Errorf("detail %q, metrics error %q", got.Outcome.Detail, got.Metrics.Error)
			}
		})
	}
}
