// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime/scripted"
)

// clock is the real one, but that some durations pass when a script says so.
type clock struct {
	mu    sync.Mutex
	late  map[time.Duration]chan time.Time
	asked map[time.Duration]int
}

func (*clock) Now() time.Time { return time.Now() }

func (c *clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked = map[time.Duration]int{}
	}
	c.asked[d]++
	if ch, ok := c.late[d]; ok {
		return ch
	}
	return time.After(d)
}

// passes lets a duration pass once a script of the attempt has reached the point.
func (j *job) passes(t *testing.T, d time.Duration, point string) {
	ch := make(chan time.Time, 1)
	j.clock.mu.Lock()
	if j.clock.late == nil {
		j.clock.late = map[time.Duration]chan time.Time{}
	}
	j.clock.late[d] = ch
	j.clock.mu.Unlock()
	j.at(t, point, func() { ch <- time.Now() })
}

// at does something once a script of the attempt has reached the point.
func (j *job) at(t *testing.T, point string, do func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		if j.rt.Control().Wait(t.Context(), trialID, point) == nil {
			do()
		}
	})
	t.Cleanup(wg.Wait) // t.Context ends before
}

// stop cancels the attempt with a cause once a script has reached the point.
func (j *job) stop(t *testing.T, point string, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	j.at(t, point, func() { cancel(cause) })
	return ctx
}

// In whatever phase an attempt is stopped: the sandbox goes, the bundle is written, and
// the outcome is the cause's.
func TestStopInEachPhase(t *testing.T) {
	causes := map[error]trial.Ending{
		trial.ErrCancelled: trial.RunCancelled,
		trial.ErrDeadline:  trial.PastDeadline,
		trial.ErrBudget:    trial.OverBudget,
		trial.ErrHandOver:  trial.RunCancelled,
		trial.ErrLeaseLost: trial.RunCancelled,
		context.Canceled:   trial.RunCancelled,
		// Not one of ours: trouble, and nothing that ends a trial for good.
		errors.New("somebody else's"): trial.InfraFailed,
	}
	phases := map[string]func(*job){
		trial.PhaseProvision: func(j *job) { j.opens("log db was coming up", "block here") },
		trial.PhaseSetup:     func(j *job) { j.Task.Steps[0].Setup = &manifest.Program{Command: argv("block here")} },
		trial.PhaseAgent:     func(j *job) { j.agent("write agent/notes.txt half", "leave-process", "block here") },
		trial.PhaseGrade:     func(j *job) { j.grader("write verifier/reward.txt 1", "block here") },
	}
	for phase, set := range phases {
		for cause, ending := range causes {
			t.Run(phase+"/"+cause.Error(), func(t *testing.T) {
				j := newJob(t)
				set(j)
				got := j.run(t, j.stop(t, "here", cause))
				if ending == trial.InfraFailed && phase == trial.PhaseProvision {
					ending = trial.ProvisionFailed
				}
				if got.Ending != ending || got.Outcome.Phase != phase {
					t.Errorf("%s in phase %s, want %s in %s", got.Ending, got.Outcome.Phase, ending, phase)
				}
				if ending != trial.ProvisionFailed && !strings.Contains(got.Outcome.Detail, cause.Error()) {
					t.Errorf("detail %q, want the cause in it", got.Outcome.Detail)
				}
				if got.Grade.Score != nil {
					t.Errorf("score %v", *got.Grade.Score)
				}
				if body, ok := got.files["logs/agent/notes.txt"]; phase == trial.PhaseAgent && (!ok || body != "half") {
					t.Errorf("what the agent left was not kept: %q", body)
				}
				if m := got.Metrics; phase != trial.PhaseProvision && m.TeardownDurationS == nil {
					t.Error("no teardown")
				}
			})
		}
	}
}

// A verdict that was reached before the attempt was stopped stands.
func TestStopAfterTheVerdict(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	j := newJob(t)
	j.agent("write out.txt hello", "write artifacts/report.txt all of it")
	j.OnPhase = func(phase string) {
		if phase == trial.PhaseCollect {
			cancel(trial.ErrCancelled)
		}
	}
	got := j.run(t, ctx)
	if got.Ending != trial.Graded || !got.Grade.BinaryPass {
		t.Errorf("%s, grade %+v", got.Ending, got.Grade)
	}
	if got.files["artifacts/report.txt"] != "all of it" || len(got.Outcome.Flags) > 0 {
		t.Errorf("collection did not go on: flags %q", got.Outcome.Flags)
	}
}

// Stopped before it began: nothing is opened.
func TestStoppedBefore(t *testing.T) {
	j := newJob(t)
	j.Environment, _ = j.rt.Prepare(t.Context(), trial.RunSpec(j.Run.Run, "", "", ""))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(trial.ErrDeadline)
	if got := j.run(t, ctx); got.Ending != trial.PastDeadline || got.Metrics.ProvisioningDurationS != nil {
		t.Errorf("%+v", got.Outcome)
	}
}

// Teardown that fails is said and changes nothing; and it goes on after a cancel.
func TestTeardown(t *testing.T) {
	t.Run("fails after a verdict", func(t *testing.T) {
		j := newJob(t)
		j.closes("fail the engine keeps it")
		got := j.run(t, t.Context())
		if got.Ending != trial.Graded || !got.Grade.BinaryPass || got.TeardownErr == nil {
			t.Errorf("%s, grade %+v, teardown %v", got.Ending, got.Grade, got.TeardownErr)
		}
		equal(t, "flags", []string{trial.FlagTeardown}, got.Outcome.Flags)
	})
	t.Run("fails after a failure", func(t *testing.T) {
		j := newJob(t)
		j.grader("nan")
		j.closes("fail the engine keeps it")
		if got := j.run(t, t.Context()); got.Ending != trial.GraderFailed || got.TeardownErr == nil {
			t.Errorf("%s, teardown %v", got.Ending, got.TeardownErr)
		}
	})
	t.Run("after a cancel", func(t *testing.T) {
		j := newJob(t)
		j.agent("block here")
		j.closes("block closing")
		closing := false
		j.at(t, "closing", func() {
			closing = true
			j.rt.Control().Release(trialID, "closing")
		})
		got := j.run(t, j.stop(t, "here", trial.ErrCancelled))
		if got.Ending != trial.RunCancelled || got.TeardownErr != nil || !closing {
			t.Errorf("%s, teardown %v, closing %v", got.Ending, got.TeardownErr, closing)
		}
	})
}

// However long provisioning takes, the agent has all of its time.
func TestProvisioningIsNotTheAgentsTime(t *testing.T) {
	const coming, timeout = 3 * time.Hour, 20 * time.Minute
	j := newJob(t)
	j.Run.Run.Agent.Timeout = manifest.Duration(timeout)
	j.opens("signal waiting", "sleep "+coming.String())
	j.passes(t, coming, "waiting")
	if got := j.run(t, t.Context()); got.Ending != trial.Graded || !got.Grade.BinaryPass {
		t.Fatalf("%+v", got.Outcome)
	}
	for _, d := range []time.Duration{coming, timeout} {
		if j.clock.asked[d] != 1 {
			t.Errorf("the runtime was asked %d times to wait for %s, want once", j.clock.asked[d], d)
		}
	}
}

var _ scripted.Clock = (*clock)(nil)
