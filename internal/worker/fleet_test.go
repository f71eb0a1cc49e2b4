// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue"
)

// A worker without work ends by itself, and one that has some, or can't know, does not.
func TestIdleExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", task{id: "a", agent: "sleep 20m"}, passes("b"))
		var low atomic.Bool
		low.Store(true)
		m := l.machine(func(c *worker.Config) {
			c.IdleExit = time.Minute
			c.MinFreeDisk = 100
			c.FreeDisk = func() (int64, error) {
				if low.Load() {
					return 1, nil
				}
				return 1000, nil
			}
		})
		start := time.Now()
		m.start()
		time.Sleep(10 * time.Minute) // of the bubble; it holds back
		select {
		case <-m.Stopped():
			t.Fatal("it took its own holding back for idleness")
		default:
		}
		low.Store(false)
		<-m.Stopped()
		if took := time.Since(start); took < 31*time.Minute || took > 32*time.Minute {
			t.Errorf("it ended after %s, want a minute after the trials", took)
		}
		l.finish(m)
		l.commit(0)
		l.commit(1)
	})
}

// A worker does not call it idleness when its queue says nothing.
func TestIdleExitNeedsAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		broken := &brokenLease{err: queue.ErrUnreachable}
		m := l.machine(func(c *worker.Config) {
			broken.Consumer = c.Queue
			c.Queue, c.IdleExit = broken, time.Minute
		})
		m.start()
		time.Sleep(time.Hour) // of the bubble
		select {
		case <-m.Stopped():
			t.Fatal("it ended while the queue was away")
		default:
		}
		broken.mend()
		<-m.Stopped()
		m.end()
	})
}

// brokenLease is a queue whose Lease fails, or hangs, until it is mended.
type brokenLease struct {
	queue.Consumer
	mu  sync.Mutex
	err error
}

func (q *brokenLease) mend() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = nil
}

func (q *brokenLease) Lease(ctx context.Context, req queue.Request) (queue.Lease, error) {
	q.mu.Lock()
	err := q.err
	q.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return q.Consumer.Lease(ctx, req)
}

func TestMaxTrials(t *testing.T) {
	for _, slots := range []int{1, 3, 8} {
		t.Run(fmt.Sprintf("%d slots", slots), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var tasks []task
				for i := range 10 {
					tasks = append(tasks, task{id: fmt.Sprint(i), agent: "sleep 1m"})
				}
				l := newLab(t, "", tasks...)
				m := l.machine(func(c *worker.Config) { c.Slots, c.MaxTrials = slots, 5 })
				m.start()
				<-m.Stopped()
				m.end()
				if n := len(l.commits()); n != 5 {
					t.Errorf("%d commits, want 5", n)
				}
				if s := m.Status(); s.Begun != 5 || !s.Draining {
					t.Errorf("status %+v", s)
				}
			})
		})
	}
}

// What turns out to be done already is not counted.
func TestMaxTrialsCountsWhatWasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", task{id: "a", agent: "block agent"}, passes("b"))
		one := func(c *worker.Config) { c.MaxTrials = 1 }
		first := l.machine(one).start()
		l.await("agent")
		first.queue.setAway(true) // it commits and can't say so
		l.control.Release("", "agent")
		<-first.Stopped()
		time.Sleep(time.Minute) // of the bubble: its lease runs out
		if _, err := l.queue.PurgeRun(t.Context(), "lab"); err != nil {
			t.Fatal(err)
		}
		for row, release := range []int{2, 2} { // the one that is done comes first
			if err := l.put(t.Context(), row, release); err != nil {
				t.Fatal(err)
			}
		}
		second := l.machine(one).start()
		<-second.Stopped()
		if l.events.count(worker.Found) != 1 || second.Status().Begun != 1 {
			t.Errorf("found %d, begun %d; want one of each", l.events.count(worker.Found), second.Status().Begun)
		}
		l.finish(first, second)
		l.commit(0)
		l.commit(1)
	})
}

// With too little of disk or memory nothing is begun, what runs goes on, and work goes on
// with a quarter more than the limit.
func TestAdmission(t *testing.T) {
	for _, what := range []string{"disk", "memory"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "", task{id: "a", agent: "block a"}, passes("b"))
				var have atomic.Int64
				have.Store(1000)
				ask := func() (int64, error) { return have.Load(), nil }
				m := l.machine(func(c *worker.Config) {
					c.Slots = 2
					if what == "disk" {
						c.MinFreeDisk, c.FreeDisk = 800, ask
					} else {
						c.MinFreeMemory, c.FreeMemory = 800, ask
					}
				})
				// A worker that begins with too little takes nothing at all.
				have.Store(799)
				m.start()
				synctest.Wait()
				time.Sleep(time.Minute) // of the bubble
				if n := l.events.count(worker.Started); n != 0 {
					t.Fatalf("%d trials were begun", n)
				}
				if r := m.Unready(); len(r) != 1 || r[0].Check != what || !strings.Contains(r[0].Detail, "799 B; stops below 800 B, goes on from 1000 B") {
					t.Errorf("unready because of %+v", r)
				}
				if s := m.Status(); len(s.Holds) != 1 || s.Holds[0].What != what || s.Running != 0 {
					t.Errorf("status %+v", s)
				}
				have.Store(999)
				time.Sleep(time.Minute) // of the bubble
				if n := l.events.count(worker.Started); n != 0 {
					t.Fatal("it began with less than a quarter more")
				}
				have.Store(1000)
				l.events.kind(worker.Committed, 1) // b
				if r := m.Unready(); len(r) != 0 {
					t.Errorf("unready because of %+v", r)
				}
				// It runs low while a slot waits for a job: that wait ends too.
				have.Store(1)
				time.Sleep(10 * time.Second) // of the bubble
				if err := l.put(t.Context(), 1, 2); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // of the bubble
				if n := l.events.count(worker.Found); n != 0 {
					t.Error("a job was taken with too little")
				}
				l.control.Release("", "a")
				l.events.kind(worker.Committed, 2)
				have.Store(5000)
				l.events.kind(worker.Found, 1)
				l.finish(m)
			})
		})
	}
}

// put releases a row once more.
func (l *lab) put(ctx context.Context, row, release int) error {
	_, err := l.queue.Publish(ctx, "lab", []queue.Job{{
		ID: queue.ID{Trial: l.rows[row].TrialID, Epoch: 1, Release: release}, Body: dispatch.Body(bundle.PlanRef{Row: row}),
	}})
	return err
}

// What can't be told is too little.
func TestAdmissionCantTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		var fails atomic.Bool
		fails.Store(true)
		m := l.machine(func(c *worker.Config) {
			c.MinFreeDisk = 1
			c.FreeDisk = func() (int64, error) {
				if fails.Load() {
					return 0, errors.New("stale file handle")
				}
				return 1 << 40, nil
			}
		}).start()
		synctest.Wait()
		if r := m.Unready(); len(r) != 1 || !strings.Contains(r[0].Detail, "stale file handle") {
			t.Errorf("unready because of %+v", r)
		}
		fails.Store(false)
		l.finish(m)
		l.commit(0)
	})
}

// A call that never returns is seen from outside: a slot that asks for work, a heartbeat,
// and the watch over the disk.
func TestStuck(t *testing.T) {
	t.Run("the queue", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			forever := make(chan struct{})
			l := newLab(t, "", passes("a"))
			m := l.machine(func(c *worker.Config) { c.Queue = deafQueue{c.Queue, forever} })
			m.start()
			stuckWithin(t, m, 10*time.Minute, "slot 1")
			close(forever)
			m.end()
		})
	})
	t.Run("the disk", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, "", passes("a"))
			hang := make(chan struct{})
			var looks atomic.Int32
			m := l.machine(func(c *worker.Config) {
				c.MinFreeDisk = 1
				c.FreeDisk = func() (int64, error) {
					if looks.Add(1) > 3 {
						<-hang
					}
					return 1 << 40, nil
				}
			})
			m.start()
			stuckWithin(t, m, 5*time.Minute, "watch over disk")
			close(hang)
			m.end()
		})
	})
	t.Run("a heartbeat", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, "", task{id: "a", agent: "sleep 30m"})
			hang := make(chan struct{})
			m := l.machine(func(c *worker.Config) { c.Queue = deafLeases{c.Queue, hang} })
			m.start()
			stuckWithin(t, m, 10*time.Minute, "heartbeat of trial")
			close(hang)
			l.finish(m)
		})
	})
	t.Run("nobody", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, "", task{id: "a", agent: "sleep 10h"})
			m := l.machine(func(c *worker.Config) { c.Slots = 2 })
			m.start()
			for range 100 {
				time.Sleep(5 * time.Minute) // of the bubble
				if r := m.Stuck(); len(r) > 0 {
					t.Fatalf("stuck: %+v", r)
				}
			}
			l.finish(m)
		})
	})
}

func stuckWithin(t *testing.T, m *machine, limit time.Duration, who string) {
	t.Helper()
	time.Sleep(time.Second) // of the bubble
	if r := m.Stuck(); len(r) > 0 {
		t.Errorf("stuck at once: %+v", r)
	}
	time.Sleep(limit) // of the bubble
	if r := m.Stuck(); len(r) != 1 || !strings.Contains(r[0].Detail, who) {
		t.Errorf("stuck: %+v, want %s", r, who)
	}
}

// deafQueue is one whose Lease doesn't hear that its context has ended.
type deafQueue struct {
	queue.Consumer
	until chan struct{}
}

func (q deafQueue) Lease(context.Context, queue.Request) (queue.Lease, error) {
	<-q.until
	return nil, queue.ErrClosed
}

// deafLeases are those whose Extend doesn't.
type deafLeases struct {
	queue.Consumer
	until chan struct{}
}

type deafLease struct {
	queue.Lease
	until chan struct{}
}

func (q deafLeases) Lease(ctx context.Context, req queue.Request) (queue.Lease, error) {
	l, err := q.Consumer.Lease(ctx, req)
	if err != nil {
		return nil, err
	}
	return deafLease{l, q.until}, nil
}

func (l deafLease) Extend(ctx context.Context) error {
	<-l.until
	return l.Lease.Extend(ctx)
}

// Bundles on their way to the store take so many bytes and no more: a trial whose bundle
// finds no room keeps its slot, and says so.
func TestSpoolBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tasks []task
		for i := range 4 {
			tasks = append(tasks, task{id: fmt.Sprint(i), agent: "flood 100\nsignal done"})
		}
		l := newLab(t, "", tasks...)
		m := l.machine(func(c *worker.Config) { c.Slots, c.Spool, c.SpoolBytes = 1, 100, 450<<10 })
		back := m.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Do: bundletest.Fail(bundle.ErrUnavailable)})
		m.start()
		time.Sleep(time.Minute) // of the bubble
		s := m.Status()
		if s.Uploading != 2 || s.Running != 1 || s.SpoolBytes < 400<<10 || s.SpoolBytes > 450<<10 {
			t.Errorf("status %+v, want two bundles of about 200 KiB in the spool, and one trial that waits", s)
		}
		if r := m.Unready(); len(r) != 1 || r[0].Check != "spool" {
			t.Errorf("unready because of %+v", r)
		}
		back()
		l.finish(m)
		for n := range tasks {
			l.checkRetries(n, 1)
		}
		if s := m.Status(); s.SpoolBytes != 0 || s.Uploading != 0 || s.Running != 0 {
			t.Errorf("status %+v", s)
		}
	})
}

// A bundle that is larger than the whole spool gets through it all the same.
func TestSpoolSmallerThanABundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"), passes("b"))
		l.finish(l.machine(func(c *worker.Config) { c.SpoolBytes = 1 }).start())
		l.commit(0)
		l.commit(1)
	})
}
