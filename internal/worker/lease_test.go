// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/runtime/scripted"
)

// holds is a task whose first attempt goes on until it is stopped.
func holds(id string) task { return task{id: id, agent: "on-attempt 1 block agent"} }

func (l *lab) await(point string) {
	l.t.Helper()
	if err := l.control.Wait(l.t.Context(), "", point); err != nil {
		l.t.Fatal(err)
	}
}

// stoppedAttempt checks what is left of an attempt that was stopped from outside: its
// evidence, and nothing that counts.
func (l *lab) stoppedAttempt(n, attempt int, why string) {
	l.t.Helper()
	as := l.attempts(n)
	if len(as) < attempt || as[attempt-1].End == nil {
		l.t.Fatalf("attempts %+v, want an end of attempt %d", as, attempt)
	}
	e := as[attempt-1].End
	if e.Committed || e.Charged || e.Superseded || e.Outcome.Status != bundle.Cancelled || !strings.Contains(e.Outcome.Detail, why) {
		l.t.Errorf("end %+v, want one that is cancelled because of %q", e, why)
	}
	if !l.sealed(l.rows[n], attempt) {
		l.t.Errorf("bundle of attempt %d is not in the store", attempt)
	}
}

func TestRevokedStopsTheTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", holds("a"))
		m := l.machine().start()
		l.await("agent")
		purged := time.Now()
		if _, err := l.queue.PurgeRun(t.Context(), "lab"); err != nil {
			t.Fatal(err)
		}
		l.events.kind(worker.Dropped, 1)
		if took := time.Since(purged); took > 15*time.Second {
			t.Errorf("it took %s, want no more than a beat", took)
		}
		l.finish(m)
		l.stoppedAttempt(0, 1, "run cancelled")
		if len(l.commits()) != 0 || m.queue.said("done")+m.queue.said("retry")+m.queue.said("bury") != 0 {
			t.Errorf("commits %v, said %v", l.commits(), m.queue.answers)
		}
	})
}

// Lost: somebody else has the trial. It is killed, nothing is said, and its bundle is
// kept without a commit.
func TestLeaseLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", task{id: "a", agent: "block agent"})
		first := l.machine()
		first.queue.deaf = true
		first.start()
		l.await("agent")
		first.queue.setAway(true)
		l.provider = &scripted.Provider{}
		second := l.machine().start()
		l.events.kind(worker.Started, 2)
		first.queue.setAway(false) // the next beat learns of it
		l.events.kind(worker.Dropped, 1)
		l.stoppedAttempt(0, 1, "")
		if first.queue.said("done")+first.queue.said("retry")+first.queue.said("bury") != 0 {
			t.Errorf("said %v", first.queue.answers)
		}
		l.control.Release("", "agent")
		l.finish(first, second)
		if c := l.commit(0); c.Attempt != 2 {
			t.Errorf("commit of attempt %d", c.Attempt)
		}
	})
}

func TestQueueAwayWithinTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", task{id: "a", agent: "signal agent\nsleep 9m"})
		m := l.machine().start()
		l.await("agent")
		m.queue.setAway(true)
		time.AfterFunc(8*time.Minute, func() { m.queue.setAway(false) })
		l.finish(m)
		if c := l.commit(0); c.Attempt != 1 || len(l.attempts(0)) != 1 {
			t.Errorf("commit of attempt %d of %d", c.Attempt, len(l.attempts(0)))
		}
	})
}

func TestQueueAwayBeyondTheGrace(t *testing.T) {
	for name, grace := range map[string]time.Duration{"default": 0, "strict": -1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "", holds("a"))
				m := l.machine(func(c *worker.Config) { c.OutageGrace = grace }).start()
				l.await("agent")
				m.queue.setAway(true)
				away := time.Now()
				l.events.kind(worker.Dropped, 1)
				want := 10 * time.Minute
				if grace < 0 {
					want = 0
				}
				if took := time.Since(away); took < want || took > want+time.Minute {
					t.Errorf("stopped after %s, want about %s", took, want)
				}
				l.stoppedAttempt(0, 1, "unreachable")
				m.queue.setAway(false)
				l.finish(m)
				if c := l.commit(0); c.Attempt != 2 {
					t.Errorf("commit of attempt %d", c.Attempt)
				}
				if m.queue.said("retry") != 0 {
					t.Errorf("said %v", m.queue.answers)
				}
			})
		})
	}
}

// The queue goes away while a bundle is uploaded: the commit counts, and the next
// delivery finds it.
func TestAnswerThatCouldNotBeGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", task{id: "a", agent: "block agent"})
		m := l.machine().start()
		l.await("agent")
		m.queue.setAway(true)
		l.control.Release("", "agent")
		l.events.kind(worker.Committed, 1)
		m.queue.setAway(false)
		l.events.kind(worker.Found, 1)
		l.finish(m)
		if len(l.attempts(0)) != 1 || l.events.count(worker.Committed) != 1 {
			t.Errorf("%d attempts", len(l.attempts(0)))
		}
	})
}

// The lease ends while the bundle is on its way to the store: the work is done and
// counts, and nothing is said to the queue any more.
func TestRevokedDuringUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		m := l.machine(func(c *worker.Config) { c.UploadParallel = 1 })
		uploading, purged := make(chan struct{}), make(chan struct{})
		m.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Times: 1, Do: bundletest.Pass(), Hit: func(bundletest.Op, string) {
			close(uploading)
			<-purged
		}})
		m.start()
		<-uploading
		if _, err := l.queue.PurgeRun(t.Context(), "lab"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		close(purged)
		l.events.kind(worker.Committed, 1)
		l.finish(m)
		l.commit(0)
		if m.queue.said("done")+m.queue.said("retry")+m.queue.said("bury") != 0 {
			t.Errorf("said %v", m.queue.answers)
		}
	})
}
