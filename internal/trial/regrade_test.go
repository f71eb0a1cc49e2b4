// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
)

// newRegradable is an attempt whose leavings can be graded again.
func newRegradable(t *testing.T) *job {
	j := newJob(t)
	j.Task.Regrade = manifest.FromArtifacts
	j.Task.Artifacts = []string{"*"}
	return j
}

// again is an attempt that grades what another left.
func (j *job) again(t *testing.T, was result) *job {
	t.Helper()
	next := newRegradable(t)
	next.agent("print this never runs", "exit 9")
	next.Task.Artifacts = j.Task.Artifacts
	next.Epoch, next.Attempt = 2, 2
	ix := bundle.Index{SchemaVersion: 1}
	bodies := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(was.files)) {
		path, err := bundle.EscapeName(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(was.files[name]))
		ix.Files = append(ix.Files, bundle.IndexEntry{Path: path, Size: int64(len(was.files[name])), SHA256: hex.EncodeToString(sum[:])})
		bodies[path] = was.files[name]
	}
	slices.SortFunc(ix.Files, func(a, b bundle.IndexEntry) int { return strings.Compare(a.Path, b.Path) })
	next.Earlier = &trial.Earlier{
		Commit: bundle.Commit{Epoch: 1, Attempt: 1, Outcome: was.Outcome, Grade: was.Grade, Metrics: was.Metrics},
		Index:  ix, Pack: "fedcba98",
		Open: func(_ context.Context, e bundle.IndexEntry) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(bodies[e.Path])), nil
		},
	}
	return next
}

// The grader finds what the agent left where it left it, and nothing that the former
// grader left; the agent's numbers stand.
func TestRegrade(t *testing.T) {
	j := newRegradable(t)
	j.agent("write out.txt wrong", "mkdir ./deep/er", "write deep/er/x 1",
		"write artifacts/a.txt a", "mkdir artifacts/workdir", "write artifacts/workdir/b b", "mkdir artifacts/artifacts", "write artifacts/artifacts/c c",
		`write agent/usage.json {"prompt_tokens": 7, "turns": 3, "cost_usd": 0.25}`, "write agent/notes n",
		`write agent/trajectory.jsonl {"role": "assistant", "content": "done"}`, `write agent/status.json {"termination_reason": "max_turns"}`)
	j.grader("write verifier/old old", "write verifier/reward.txt 0")
	first := j.run(t, t.Context())
	if first.Grade.BinaryPass || first.Outcome.TerminationReason != "max_turns" || first.Metrics.Usage.PromptTokens != 7 {
		t.Fatalf("%+v %+v", first.Outcome, first.Metrics)
	}

	next := j.again(t, first)
	next.grader("read out.txt", "read deep/er/x", "read artifacts/a.txt", "read artifacts/workdir/b", "read artifacts/artifacts/c",
		"read agent/notes", "read agent/usage.json", "require-file input/instruction.md", "require-no-file verifier/old", "write verifier/reward.txt 1")
	var phases []string
	next.OnPhase = func(p string) { phases = append(phases, p) }
	got := next.run(t, t.Context())
	if !got.Grade.BinaryPass || got.Ending != trial.Graded {
		t.Errorf("%+v %+v\n%s", got.Outcome, got.Grade, got.files["logs/grader.log"])
	}
	equal(t, "flags", []string{"regraded"}, got.Outcome.Flags)
	equal(t, "reason", "max_turns", got.Outcome.TerminationReason)
	equal(t, "phases", []string{"provision", "restore", "grade", "collect", "collect", "teardown"}, phases)
	if log := got.files["logs/grader.log"]; !strings.Contains(log, ` wrong1abcn{"prompt_tokens"`) {
		t.Errorf("the grader found %s", log)
	}
	equal(t, "files", slices.Sorted(maps.Keys(without(first.files, "logs/verifier/old"))), slices.Sorted(maps.Keys(got.files)))
	equal(t, "the agent's log", first.files["logs/agent.log"], got.files["logs/agent.log"])
	m, was := got.Metrics, first.Metrics
	if m.Usage != was.Usage || m.Turns != 3 || *m.CostUSD != 0.25 || *m.AgentSpanDurationS != *was.AgentSpanDurationS || *m.AgentExitCode != 0 {
		t.Errorf("metrics %+v, want the agent's to be those of %+v", m, was)
	}
	if want := was.LatencyTotalS.Millis() - was.GradingDurationS.Millis() + m.GradingDurationS.Millis(); m.LatencyTotalS.Millis() != want {
		t.Errorf("latency %s, want %d ms", m.LatencyTotalS, want)
	}
	var task struct{ Regraded bundle.Regraded }
	got.decode(t, "task.yaml", &task)
	equal(t, "task.yaml", bundle.Regraded{Epoch: 1, Attempt: 1, Pack: "fedcba98"}, task.Regraded)
	var before, after map[string]any
	first.decode(t, "trajectory.yaml", &before)
	got.decode(t, "trajectory.yaml", &after)
	equal(t, "trajectory", before, after)

	// A third verdict, over what the second left.
	third := next.again(t, got)
	third.grader("read out.txt", "read artifacts/workdir/b", "write verifier/reward.txt 0.5")
	if last := third.run(t, t.Context()); *last.Grade.Score != 0.5 || last.Metrics.Usage != was.Usage {
		t.Errorf("%+v %+v", last.Outcome, last.Grade)
	}
}

func without(files map[string]string, name string) map[string]string {
	files = maps.Clone(files)
	delete(files, name)
	return files
}

// How the agent ended is not forgotten, whatever the first grader did.
func TestRegradeKeepsHowTheAgentEnded(t *testing.T) {
	for name, c := range map[string]struct {
		agent, grader []string
		want          trial.Ending
		reason        string
	}{
		"done, grader crashed":     {argv("write out.txt hello"), argv("exit 3"), trial.Graded, "agent_done"},
		"own word, grader crashed": {argv(`write agent/status.json {"termination_reason": "stuck_detected"}`), argv("exit 3"), trial.Graded, "stuck_detected"},
		"exhausted":                {argv("oom"), argv("write verifier/reward.txt 0"), trial.Exhausted, "resource_exhausted"},
		"timed out":                {argv("hold"), argv("write verifier/reward.txt 0"), trial.AgentTimedOut, "timeout"},
		"timed out, crashed":       {argv("hold"), argv("exit 3"), trial.AgentTimedOut, "timeout"},
		"exhausted, crashed":       {argv("oom"), argv("exit 3"), trial.Exhausted, "resource_exhausted"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newRegradable(t)
			j.agent(c.agent...)
			j.grader(c.grader...)
			if c.want == trial.AgentTimedOut {
				j.Run.Run.Agent.Timeout = manifest.Duration(7 * time.Minute)
				j.agent("signal late", "hold")
				j.passes(t, 7*time.Minute, "late")
			}
			first := j.run(t, t.Context())
			if why := trial.OutcomeRegradable(first.Outcome); why != "" {
				t.Fatalf("%+v: %s", first.Outcome, why)
			}
			next := j.again(t, first)
			next.grader("write verifier/reward.txt 1")
			got := next.run(t, t.Context())
			if got.Ending != c.want || got.Outcome.TerminationReason != c.reason || !got.Outcome.Scored {
				t.Errorf("%s %+v; want %s, %s", got.Ending, got.Outcome, c.want, c.reason)
			}
			if got.Metrics.Error != "" {
				t.Errorf("the former grader's error stands: %+v", got.Metrics)
			}
		})
	}
}

// A bundle that is not what was sealed is trouble of ours that no repetition mends; a
// store that doesn't answer is tried again.
func TestRegradeOfABrokenBundle(t *testing.T) {
	j := newRegradable(t)
	first := j.run(t, t.Context())
	broken := &bundle.MismatchError{Path: "x", Problem: "sha256"}
	for name, c := range map[string]struct {
		file      string
		err       error
		permanent bool
	}{
		"the trajectory":    {"trajectory.yaml", broken, true},
		"the agent's log":   {"logs/agent.log", broken, true},
		"an artifact":       {"artifacts/workdir/out.txt", broken, true},
		"the list of files": {"artifacts.json", broken, true},
		"a store away":      {"artifacts/workdir/out.txt", bundle.ErrUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			next := j.again(t, first)
			open := next.Earlier.Open
			next.Earlier.Open = func(ctx context.Context, e bundle.IndexEntry) (io.ReadCloser, error) {
				if e.Path != c.file {
					return open(ctx, e)
				}
				r, err := open(ctx, e)
				return io.NopCloser(io.MultiReader(io.LimitReader(r, 1), failing{c.err})), err
			}
			got := next.run(t, t.Context())
			if got.Ending != trial.InfraFailed || got.Outcome.Phase != trial.PhaseRestore || got.Permanent != c.permanent {
				t.Errorf("%s %+v, permanent %t", got.Ending, got.Outcome, got.Permanent)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestRegradeIsStopped(t *testing.T) {
	j := newRegradable(t)
	first := j.run(t, t.Context())
	ctx, cancel := context.WithCancelCause(t.Context())
	next := j.again(t, first)
	next.OnPhase = func(p string) {
		if p == trial.PhaseRestore {
			cancel(trial.ErrHandOver)
		}
	}
	if got := next.run(t, ctx); got.Ending != trial.RunCancelled {
		t.Errorf("%+v", got.Outcome)
	}
}

func TestFilesRegradable(t *testing.T) {
	list := func(kept, skipped string, total int) []byte {
		return fmt.Appendf(nil, `{"schema_version":1,"kept":[%s],"skipped":[%s],"skipped_total":%d}`, kept, skipped, total)
	}
	const kept = `{"path":"artifacts/workdir/a b","source":"workdir/a b","bytes":5}`
	index := func(size int64) *bundle.Index {
		return &bundle.Index{Files: []bundle.IndexEntry{{Path: "artifacts/workdir/a~20b", Size: size}}}
	}
	for name, c := range map[string]struct {
		list  []byte
		index *bundle.Index
		want  string
	}{
		"nothing was left":          {nil, nil, ""},
		"all is there":              {list(kept, "", 0), nil, ""},
		"all is there, no secrets":  {list(kept, "", 0), index(5), ""},
		"a secret was taken out":    {list(kept, "", 0), index(12), "workdir/a b held a secret"},
		"a name held a secret":      {list(`{"path":"artifacts/workdir/[redacted]","source":"workdir/[redacted]","bytes":5}`, "", 0), index(5), "held a secret"},
		"too large":                 {list("", `{"path":"workdir/b","bytes":9,"reason":"larger"}`, 1), nil, "workdir/b was not collected: larger"},
		"the grader's was left out": {list("", `{"path":"logs/verifier/b","bytes":9,"reason":"larger"}`, 1), nil, ""},
		"a pattern found nothing":   {list("", `{"path":"workdir/*.log","reason":"no file matches"}`, 1), nil, ""},
		"more than is listed":       {list("", "", 3), nil, "3 files were not collected"},
		"nonsense":                  {[]byte("?"), nil, "can't be read"},
	} {
		if got := trial.FilesRegradable(c.list, c.index); !strings.HasPrefix(got, c.want) && !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTaskRegradable(t *testing.T) {
	for want, change := range map[string]func(*job){
		"":                           func(*job) {},
		"pack.yaml doesn't say":      func(j *job) { j.Task.Regrade = "" },
		"several steps":              func(j *job) { j.Task.Steps = make([]manifest.Step, 2) },
		"agent_processes: keep":      func(j *job) { j.Task.AgentProcesses = "keep" },
		"(agent_processes: keep), w": func(j *job) { j.Run.Run.AgentProcesses = "keep" },
	} {
		j := newRegradable(t)
		change(j)
		why, fix := trial.TaskRegradable(&j.Run.Run, j.Task)
		if !strings.Contains(why, want) || (why == "") != (want == "") || (fix == "") != (want == "") {
			t.Errorf("%q: %q, %q", want, why, fix)
		}
	}
}
