// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// Every row of the outcome table, reached by a trial from end to end. The bundles are
// under testdata/bundles.
var rows = []struct {
	name   string
	set    func(*testing.T, *job)
	stop   error // cancels the attempt while its agent blocks at "here"
	ending trial.Ending
	// Of the outcome.
	reason, phase, stage, detail string
	class                        bundle.FailureClass
	flags                        []string
	score                        float64 // where it is scored
	pass, permanent, capacity    bool
}{
	{
		name: "graded pass", ending: trial.Graded,
		reason: "agent_done", class: bundle.NoFailure, score: 1, pass: true,
	},
	{
		name: "graded failure", ending: trial.Graded,
		set: func(_ *testing.T, j *job) {
			j.agent("warn no idea", "log db up", "log db one", "log db two", "log db down", "exit 3")
		},
		reason: "agent_done", class: bundle.AgentFailure, detail: "agent ended with exit code 3",
	},
	{
		name: "graded with the agent's own word", ending: trial.Graded,
		set: func(_ *testing.T, j *job) {
			j.agent(`write agent/status.json {"termination_reason":"max_turns","detail":"30 turns"}`, "write out.txt hello")
		},
		reason: "max_turns", class: bundle.NoFailure, detail: "30 turns", score: 1, pass: true,
	},
	{
		name: "graded on success with services", ending: trial.Graded,
		set: func(_ *testing.T, j *job) {
			j.Run.Run.Capture.OnSuccess = true
			j.agent("write out.txt hello", "log db fine")
		},
		reason: "agent_done", class: bundle.NoFailure, score: 1, pass: true,
	},
	{
		name: "agent timed out", ending: trial.AgentTimedOut,
		set: func(t *testing.T, j *job) {
			j.Run.Run.Agent.Timeout = manifest.Duration(7 * time.Minute)
			j.agent("write out.txt hello", "log - was here", "signal late", "hold")
			j.passes(t, 7*time.Minute, "late")
		},
		reason: "timeout", class: bundle.AgentFailure, detail: "agent ran out of time",
		flags: []string{"timeout_scored"}, score: 1, pass: true,
	},
	{
		name: "exhausted and alive", ending: trial.Exhausted, set: func(_ *testing.T, j *job) { j.agent("write out.txt hello", "oom") },
		reason: "resource_exhausted", class: bundle.AgentFailure, detail: "agent used up its memory", score: 1, pass: true,
	},
	{
		name: "exhausted and dead", ending: trial.Exhausted, set: func(_ *testing.T, j *job) { j.agent("write out.txt hello", "oom box") },
		reason: "resource_exhausted", class: bundle.AgentFailure, detail: "agent used up its memory",
		flags: []string{"collection_incomplete"},
	},
	{
		name: "setup command failed", ending: trial.SetupFailed,
		set: func(_ *testing.T, j *job) {
			j.Task.Steps[0].Setup = &manifest.Program{Command: argv("print installing", "echo-env CHANNEL", "exit 4"), Env: map[string]string{"CHANNEL": "beta"}}
		},
		reason: "setup_error", class: bundle.TaskFailure, phase: "setup", detail: "setup command ended with exit code 4",
	},
	{
		name: "agent can't be started", ending: trial.SetupFailed, set: func(_ *testing.T, j *job) { j.agent("no-start") },
		reason: "setup_error", class: bundle.TaskFailure, phase: "agent", detail: `agent: can't start "no-start": it was not to start`,
	},
	{
		name: "no oracle", ending: trial.SetupFailed,
		set:    func(_ *testing.T, j *job) { j.Run.Run.Agent = manifest.Agent{Name: manifest.OracleAgent} },
		reason: "setup_error", class: bundle.TaskFailure, phase: "agent", detail: "the pack has no oracle for this task",
	},
	{
		name: "provider failed", ending: trial.ProviderFailed,
		set: func(_ *testing.T, j *job) {
			j.agent(`write agent/status.json {"termination_reason":"rate_limit","detail":"429 again and again"}`, "write out.txt hello")
		},
		reason: "rate_limit", class: bundle.ProviderFailure, phase: "agent", detail: "429 again and again",
	},
	{
		name: "no verdict", ending: trial.GraderFailed, set: func(_ *testing.T, j *job) { j.grader("print nothing to say") },
		reason: "grader_error", class: bundle.GraderFailure, phase: "grade",
		detail: "the grader left neither reward.txt nor reward.json in $TIDEMILL_LOGS_DIR/verifier",
	},
	{
		name: "verdict that is not finite", ending: trial.GraderFailed, set: func(_ *testing.T, j *job) { j.grader("nan") },
		reason: "grader_error", class: bundle.GraderFailure, phase: "grade", detail: "reward.txt: NaN is not finite",
	},
	{
		name: "grader crashed", ending: trial.GraderFailed,
		set:    func(_ *testing.T, j *job) { j.grader("write verifier/reward.txt 1", "kill 11") },
		reason: "grader_error", class: bundle.GraderFailure, phase: "grade", detail: "grader was killed by SIGSEGV",
	},
	{
		name: "grader out of time", ending: trial.GraderFailed,
		set: func(t *testing.T, j *job) {
			j.Run.Run.Grade.Timeout = manifest.Duration(7 * time.Minute)
			j.grader("write verifier/reward.txt 1", "signal late", "hold")
			j.passes(t, 7*time.Minute, "late")
		},
		reason: "grader_error", class: bundle.GraderFailure, phase: "grade", detail: "grader ran out of time",
	},
	{
		name: "grader can't be started", ending: trial.GraderFailed, set: func(_ *testing.T, j *job) { j.grader("no-start") },
		reason: "grader_error", class: bundle.GraderFailure, phase: "grade", detail: `grade: can't start "no-start": it was not to start`,
	},
	{
		name: "provisioning failed", ending: trial.ProvisionFailed,
		set: func(_ *testing.T, j *job) {
			j.opens("log db one", "log db two", "log db three", "log db four", "service-exit db 1", "service-oom cache",
				"missing log of web", "fail await_ready db is not healthy")
		},
		reason: "provision_error", class: bundle.InfraFailure, phase: "provision", stage: "await_ready",
		detail: "provision " + trialID + ": await_ready: db is not healthy",
	},
	{
		name: "provisioning can't work", ending: trial.ProvisionFailed, set: func(_ *testing.T, j *job) { j.opens("fail-permanent image no such image") },
		reason: "provision_error", class: bundle.InfraFailure, phase: "provision", stage: "image",
		detail: "provision " + trialID + ": image: no such image", permanent: true,
	},
	{
		name: "no capacity", ending: trial.ProvisionFailed, set: func(_ *testing.T, j *job) { j.opens("capacity all taken") },
		reason: "provision_error", class: bundle.InfraFailure, phase: "provision", stage: "provision",
		detail: "provision " + trialID + ": provision: all taken: no capacity now", capacity: true,
	},
	{
		name: "sandbox lost", ending: trial.SandboxLost,
		set:    func(_ *testing.T, j *job) { j.agent("print so far so good", "log - engine gone", "lose-sandbox") },
		reason: "runtime_lost", class: bundle.InfraFailure, phase: "agent",
		detail: "exec in " + trialID + ": sandbox lost", flags: []string{"collection_incomplete"},
	},
	{
		name: "trouble of the engine", ending: trial.InfraFailed, set: func(_ *testing.T, j *job) { j.agent("write agent/notes.txt half", "error the engine says 500") },
		reason: "infra_error", class: bundle.InfraFailure, phase: "agent", detail: "exec in " + trialID + ": the engine says 500",
	},
	{
		name: "trouble before it began", ending: trial.InfraFailed,
		set: func(_ *testing.T, j *job) {
			j.Task = nil
			j.Early = &trial.EarlyFailure{Ending: trial.InfraFailed, Err: errors.New("pack 0123abcd: not found")}
		},
		reason: "infra_error", class: bundle.InfraFailure, phase: "provision", detail: "pack 0123abcd: not found",
	},
	{
		name: "unsupported before it began", ending: trial.ProvisionFailed,
		set: func(_ *testing.T, j *job) {
			err := fmt.Errorf("prepare: %w", &runtime.UnsupportedError{Runtime: "scripted", Feature: "network_policy", Value: "no_internet"})
			j.Early = &trial.EarlyFailure{Ending: trial.ProvisionFailed, Err: err}
		},
		reason: "provision_error", class: bundle.InfraFailure, phase: "provision", permanent: true,
		detail: "prepare: runtime scripted can't enforce network_policy no_internet",
	},
	{
		name: "cancelled", ending: trial.RunCancelled, stop: trial.ErrCancelled,
		reason: "cancelled", class: bundle.LimitFailure, phase: "agent", detail: "run cancelled",
	},
	{
		name: "past the deadline", ending: trial.PastDeadline, stop: trial.ErrDeadline,
		reason: "deadline", class: bundle.LimitFailure, phase: "agent", detail: "run past its deadline",
	},
	{
		name: "over budget", ending: trial.OverBudget, stop: trial.ErrBudget,
		reason: "budget", class: bundle.LimitFailure, phase: "agent", detail: "run over its budget",
	},
}

func TestOutcomes(t *testing.T) {
	reached := map[trial.Ending]bool{trial.Poisoned: true} // the worker's word, not an attempt's
	for _, row := range rows {
		reached[row.ending] = true
		t.Run(row.name, func(t *testing.T) {
			j := newJob(t)
			if row.set != nil {
				row.set(t, j)
			}
			ctx := t.Context()
			if row.stop != nil {
				j.agent("write agent/notes.txt half", "print working", "block here")
				ctx = j.stop(t, "here", row.stop)
			}
			got := j.run(t, ctx)
			want := bundle.Outcome{
				Status: trial.Table[row.ending].Status, TerminationReason: row.reason, FailureClass: row.class,
				Scored: trial.Table[row.ending].Scored, Phase: row.phase, Stage: row.stage, Detail: row.detail, Flags: row.flags,
			}
			if got.Ending != row.ending {
				t.Errorf("ending %s, want %s", got.Ending, row.ending)
			}
			equal(t, "outcome", want, got.Outcome)
			equal(t, "permanent, capacity", [2]bool{row.permanent, row.capacity}, [2]bool{got.Permanent, got.Capacity})
			if want.Scored {
				equal(t, "score", row.score, *got.Grade.Score)
			}
			equal(t, "pass", row.pass, got.Grade.BinaryPass)
			got.golden(t, row.name)
		})
	}
	for ending := range trial.Table {
		if !reached[ending] {
			t.Errorf("no case ends as %s", ending)
		}
	}
}

// The words that an agent may give for its provider.
func TestProviderWords(t *testing.T) {
	for _, word := range []string{"rate_limit", "api_timeout", "api_error"} {
		j := newJob(t)
		j.agent(`write agent/status.json {"termination_reason":"` + word + `"}`)
		if got := j.run(t, t.Context()); got.Ending != trial.ProviderFailed || got.Outcome.TerminationReason != word {
			t.Errorf("%s: %+v", word, got.Outcome)
		}
	}
}

func TestShouldRetry(t *testing.T) {
	class := func(e trial.Ending) string { return string(trial.Table[e].Class) }
	for ending, row := range trial.Table {
		byDefault := row.Retry == trial.Retry
		ifAsked := byDefault || row.Retry == trial.RetryIfAsked
		for _, c := range []struct {
			asked     []string
			permanent bool
			want      bool
		}{
			{nil, false, byDefault},
			{[]string{class(ending)}, false, ifAsked},
			{[]string{"something else"}, false, false},
			{nil, true, false},
			{[]string{class(ending)}, true, false},
		} {
			if got := ending.ShouldRetry(c.asked, c.permanent); got != c.want {
				t.Errorf("%s, asked %q, permanent %v: %v", ending, c.asked, c.permanent, got)
			}
		}
	}
}

// The table of docs/trial-lifecycle.md is the one in code.
func TestDocumentedTable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs", "trial-lifecycle.md"))
	if err != nil {
		t.Fatal(err)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	retry := map[trial.RetryRule]string{trial.NoRetry: "no", trial.RetryIfAsked: "if asked", trial.Retry: "yes", trial.OnResume: "on resume"}
	documented := map[trial.Ending]bool{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		row, ok := trial.Table[trial.Ending(cells[0])]
		if !ok || len(cells) != 8 {
			continue
		}
		documented[trial.Ending(cells[0])] = true
		want := []string{string(row.Status), row.Reason, string(row.Class), yes[row.Scored], retry[row.Retry], yes[row.Commit]}
		if !slices.Equal(cells[2:], want) {
			t.Errorf("%s: the page has %q, the code %q", cells[0], cells[2:], want)
		}
	}
	for ending := range trial.Table {
		if !documented[ending] {
			t.Errorf("%s is not on the page", ending)
		}
	}
}
