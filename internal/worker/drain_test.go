// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/worker"
)

// A worker that is told to stop takes nothing new and lets what runs come to its end.
func TestDrainWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", task{id: "a", agent: "block agent"}, passes("b"))
		m := l.machine(func(c *worker.Config) { c.DrainTimeout = time.Hour }).start()
		l.await("agent")
		m.stop()
		synctest.Wait()
		l.control.Release("", "agent")
		m.end()
		if c := l.commit(0); !c.Outcome.Scored {
			t.Errorf("commit %+v", c)
		}
		if len(l.commits()) != 1 || len(l.attempts(1)) != 0 {
			t.Error("the second trial was begun")
		}
	})
}

// What doesn't come to its end is handed over: at the drain timeout, or at once.
func TestHandOver(t *testing.T) {
	for _, test := range []struct {
		name  string
		drain time.Duration
		hurry bool
		stop  bool
		after time.Duration
	}{
		{name: "at the drain timeout", drain: 20 * time.Minute, stop: true, after: 20 * time.Minute},
		{name: "without a drain timeout", stop: true},
		{name: "in a hurry", drain: time.Hour, stop: true, hurry: true},
		{name: "in a hurry that comes first", drain: time.Hour, hurry: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "retry: {max_attempts: 1}\n", holds("a"))
				first := l.machine(func(c *worker.Config) { c.DrainTimeout = test.drain }).start()
				l.await("agent")
				start := time.Now()
				if test.stop {
					first.stop()
					synctest.Wait()
				}
				if test.hurry {
					first.Hurry()
				}
				<-first.Stopped()
				if took := time.Since(start); took < test.after || took > test.after+time.Minute {
					t.Errorf("it took %s, want about %s", took, test.after)
				}
				l.stoppedAttempt(0, 1, "worker is stopping")
				first.end()
				if first.queue.said("hand back") != 1 || first.queue.said("retry") != 0 {
					t.Errorf("said %v", first.queue.answers)
				}
				second := l.machine().start()
				start = time.Now()
				l.finish(second)
				if c := l.commit(0); c.Attempt != 2 || !c.Outcome.Scored {
					t.Errorf("commit %+v", c)
				}
				if waited := time.Since(start); waited > time.Second {
					t.Errorf("the next worker waited %s for it", waited)
				}
			})
		})
	}
}

// A worker that has to stop while the store is away gives up soon, and not in minutes.
func TestHurryWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		m := l.machine(func(c *worker.Config) { c.StoreRetry = 24 * time.Hour })
		hit := make(chan struct{}, 1)
		m.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Do: bundletest.Fail(bundle.ErrUnavailable), Hit: func(bundletest.Op, string) {
			select {
			case hit <- struct{}{}:
			default:
			}
		}})
		m.start()
		<-hit
		start := time.Now()
		m.Hurry()
		m.end()
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		l.finish(l.machine().start())
		l.commit(0)
	})
}

// A worker may be stopped before it began.
func TestStopAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		m := l.machine()
		m.Hurry()
		m.start()
		m.end()
		if m.queue.said("retry") != 0 {
			t.Errorf("said %v; it had nothing to give back", m.queue.answers)
		}
	})
}
