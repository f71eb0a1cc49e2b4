// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/scripted"
)

const errorStatus = `write agent/status.json {"termination_reason":"rate_limit"}`

// What fails is tried again, or not, as the outcome table and the run file say.
func TestRetries(t *testing.T) {
	none := func(runtime.Labels) string { return "" }
	for _, test := range []struct {
		name     string
		extra    string
		task     task
		open     func(runtime.Labels) string
		attempts int
		reason   string // of the commit
		dead     bool
	}{
		{name: "provider fails twice", task: task{agent: "first 2 " + errorStatus}, attempts: 3, reason: "agent_done"},
		{name: "provider fails always", task: task{agent: errorStatus}, attempts: 3, reason: "rate_limit", dead: true},
		{name: "one attempt allowed", extra: "retry: {max_attempts: 1}\n", task: task{agent: errorStatus}, attempts: 1, reason: "rate_limit", dead: true},
		{name: "five attempts allowed", extra: "retry: {max_attempts: 5}\n", task: task{agent: errorStatus}, attempts: 5, reason: "rate_limit", dead: true},
		{name: "provider failures not asked for", extra: "retry: {on: [infra]}\n", task: task{agent: errorStatus}, attempts: 1, reason: "rate_limit"},
		{name: "sandbox lost once", task: task{agent: "first 1 lose-sandbox"}, attempts: 2, reason: "agent_done"},
		{name: "setup error", task: task{agent: "no-start"}, attempts: 1, reason: "setup_error"},
		{name: "setup error, asked for", extra: "retry: {on: [task]}\n", task: task{agent: "no-start"}, attempts: 3, reason: "setup_error", dead: true},
		{name: "grader error", task: task{grade: "nan"}, attempts: 1, reason: "grader_error"},
		{name: "grader error, asked for", extra: "retry: {on: [grader]}\n", task: task{grade: "first 1 nan\non-attempt 2 write verifier/reward.txt 1"}, attempts: 2, reason: "agent_done"},
		{name: "agent fails", task: task{agent: "exit 1", grade: "write verifier/reward.txt 0"}, attempts: 1, reason: "agent_done"},
		{name: "no sandbox for a while", open: func(runtime.Labels) string { return "fail-times 2 image not yet" }, attempts: 3, reason: "agent_done"},
		{name: "no sandbox at all", open: func(runtime.Labels) string { return "fail image no" }, attempts: 3, reason: "provision_error", dead: true},
		{name: "no sandbox ever", open: func(runtime.Labels) string { return "fail-permanent policy never" }, attempts: 1, reason: "provision_error"},
		{name: "no room for long", open: func(l runtime.Labels) string {
			if l.Attempt < 6 {
				return "capacity full"
			}
			return ""
		}, attempts: 6, reason: "agent_done"},
		{name: "no room ever", open: func(runtime.Labels) string { return "capacity full" }, attempts: 103, reason: "provision_error", dead: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.task.id = "a"
				if test.task.agent == "" {
					test.task.agent = "print hello"
				}
				l := newLab(t, test.extra, test.task)
				m := l.machine()
				m.rt.open = script(none)
				if test.open != nil {
					m.rt.open = script(test.open)
				}
				l.finish(m.start())
				c := l.commit(0)
				if c.Outcome.TerminationReason != test.reason || c.Attempt != test.attempts {
					t.Errorf("commit of attempt %d with %+v; want attempt %d with %s", c.Attempt, c.Outcome, test.attempts, test.reason)
				}
				l.checkRetries(0, test.attempts)
				dead, err := l.queue.DeadLetters(t.Context(), "lab", 0)
				if err != nil || (len(dead) == 1) != test.dead {
					t.Errorf("dead letters %+v, %v; want one: %v", dead, err, test.dead)
				}
				if test.dead && !strings.Contains(dead[0].Reason, test.reason) {
					t.Errorf("dead because of %q", dead[0].Reason)
				}
			})
		})
	}
}

// checkRetries checks that there are n attempts, all with their evidence, of which the
// last one counts.
func (l *lab) checkRetries(row, n int) {
	l.t.Helper()
	as := l.attempts(row)
	if len(as) != n {
		l.t.Fatalf("%d attempts, want %d", len(as), n)
	}
	for i, a := range as {
		last := i == n-1
		if a.End == nil || a.End.Committed != last || a.End.Superseded || a.End.Why == "" {
			l.t.Errorf("attempt %d: end %+v", i+1, a.End)
			continue
		}
		if capacity := strings.HasPrefix(a.End.Why, "no capacity: "); a.End.Charged == capacity {
			l.t.Errorf("attempt %d: charged %v, %s", i+1, a.End.Charged, a.End.Why)
		}
		if !l.sealed(l.rows[row], i+1) {
			l.t.Errorf("bundle of attempt %d is not in the store", i+1)
		}
	}
}

// A retry waits, and what waits takes no slot.
func TestRetryWaitsBesideTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "retry: {min_backoff: 1h, max_backoff: 2h}\n", task{id: "a", agent: "first 1 " + errorStatus}, passes("b"))
		start := time.Now()
		m := l.machine().start()
		e := l.events.kind(worker.Retrying, 1)
		if l.events.kind(worker.Committed, 1); time.Since(start) > time.Second {
			t.Errorf("b waited %s for a", time.Since(start))
		}
		l.finish(m)
		if e.After <= 0 || e.After > time.Hour || time.Since(start) < e.After {
			t.Errorf("the retry was to wait %s, and came after %s", e.After, time.Since(start))
		}
	})
}

// Several attempts at once can't be had by restarting: attempts that were charged before
// count, whoever made them.
func TestChargesAreTheStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "retry: {min_backoff: 1h, max_backoff: 1h}\n", task{id: "a", agent: errorStatus})
		for n := 1; n <= 2; n++ {
			m := l.machine().start()
			l.events.kind(worker.Retrying, n)
			m.end()
		}
		l.finish(l.machine().start())
		l.checkRetries(0, 3)
	})
}

// The runtime can't be prepared for a while.
func TestPrepareFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		m := l.machine()
		m.rt.prepare = func(context.Context) error {
			if m.rt.prepared < 3 {
				time.Sleep(7 * time.Second) // of the test's clock
				return fmt.Errorf("pull: registry says 503")
			}
			return nil
		}
		l.finish(m.start())
		l.checkRetries(0, 3)
		if m.rt.prepared != 3 || m.rt.closed != 1 {
			t.Errorf("prepared %d times, closed %d times", m.rt.prepared, m.rt.closed)
		}
		for _, a := range l.attempts(0)[:2] {
			if a.End.Outcome.TerminationReason != bundle.ReasonProvisionError || !strings.Contains(a.End.Outcome.Detail, "503") || a.End.LatencyS != 7 {
				t.Errorf("end %+v", a.End)
			}
		}
		why := l.events.kind(worker.Retrying, 2).Why
		if !regexp.MustCompile(`^provision_error: .*pull: registry says 503; attempt [23] of 3 follows in [0-9.]+`).MatchString(why) {
			t.Errorf("retried since %q", why)
		}
	})
}

// A runtime that takes an hour to be prepared keeps nobody from being stopped.
func TestStopDuringPrepare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"), passes("b"))
		m := l.machine(func(c *worker.Config) { c.Slots = 2 })
		preparing := make(chan struct{})
		m.rt.prepare = func(ctx context.Context) error {
			close(preparing)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		m.start()
		<-preparing
		l.events.kind(worker.Started, 2)
		start := time.Now()
		if _, err := l.queue.PurgeRun(t.Context(), "lab"); err != nil {
			t.Fatal(err)
		}
		l.events.kind(worker.Dropped, 2)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		m.end()
		l.stoppedAttempt(0, 1, "run cancelled")
		l.stoppedAttempt(1, 1, "run cancelled")
	})
}

func TestMissingSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "retry: {max_attempts: 1}\n", passes("a"))
		l.rec.Run.Agent.Secrets = []string{"TM_TEST_NOT_SET_ANYWHERE"}
		l.rewriteRun()
		l.finish(l.machine().start())
		if c := l.commit(0); !strings.Contains(c.Outcome.Detail, "TM_TEST_NOT_SET_ANYWHERE") || c.Outcome.TerminationReason != bundle.ReasonInfraError {
			t.Errorf("outcome %+v", c.Outcome)
		}
	})
}

func TestUnknownRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "retry: {max_attempts: 1}\n", passes("a"))
		m := l.machine(func(c *worker.Config) {
			c.Runtimes = map[string]runtime.Runtime{"other": c.Runtimes[scripted.Type]}
			c.Offers = []string{scripted.Type} // it says more than it can
		})
		l.finish(m.start())
		if c := l.commit(0); !strings.Contains(c.Outcome.Detail, "no runtime scripted") {
			t.Errorf("outcome %+v", c.Outcome)
		}
	})
}

// A worker that dies takes nothing from the attempts that are allowed: the store has a
// claim without an end then.
func TestCrashIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "retry: {max_attempts: 2}\n", task{id: "a", agent: "on-attempt 1 block agent\n" + errorStatus})
		first := l.machine().start()
		l.await("agent")
		first.die()
		l.finish(l.machine().start())
		if as := l.attempts(0); len(as) != 3 || as[0].End != nil || !as[1].End.Charged || !as[2].End.Committed {
			t.Errorf("attempts %+v", as)
		}
	})
}
