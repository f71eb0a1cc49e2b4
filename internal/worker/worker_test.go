// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue"
)

// writes notes the order in which a worker writes, and does not disturb.
func writes(m *machine) func() []string {
	var mu sync.Mutex
	var keys []string
	note := func(_ bundletest.Op, key string) {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, strings.TrimPrefix(key, "runs/lab/"))
	}
	for _, op := range []bundletest.Op{bundletest.OpCreate, bundletest.OpPut, bundletest.OpSwap, bundletest.OpDelete} {
		m.store.Inject(bundletest.Fault{Op: op, Do: bundletest.Pass(), Hit: note})
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(keys)
	}
}

func TestOrdinaryTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a/1"))
		m := l.machine()
		wrote := writes(m)
		l.finish(m.start())

		c := l.commit(0)
		if !c.Outcome.Scored || !c.Grade.BinaryPass || c.Attempt != 1 || c.Epoch != 1 || c.Worker != "w1" || c.Plan != (bundle.PlanRef{}) {
			t.Errorf("commit %+v", c)
		}
		got := wrote()
		if len(got) > 12 {
			t.Errorf("%d objects, want 12 at most: %q", len(got), got)
		}
		id := l.rows[0].TrialID
		files := "trials/a~2F1/0/1/"
		middle := slices.Sorted(slices.Values(got[1 : len(got)-4]))
		want := []string{
			files + "env.yaml", files + "grade.yaml", files + "logs/agent.log", files + "logs/grader.log",
			files + "metrics.yaml", files + "task.yaml", files + "trajectory.yaml",
		}
		if diff := cmp.Diff(want, middle); diff != "" {
			t.Errorf("files:\n%s", diff)
		}
		want = []string{
			"attempts/" + id + "/1.json",
			files + "index.json", "commits/" + id[:2] + "/" + id + ".1.json", "attempts/" + id + "/1.end.json", "trials/a~2F1/0/result.json",
		}
		if diff := cmp.Diff(want, slices.Concat(got[:1], got[len(got)-4:])); diff != "" {
			t.Errorf("order of writes:\n%s", diff)
		}
		a := l.attempts(0)
		if len(a) != 1 || a[0].End == nil || !a[0].End.Committed || a[0].End.Superseded || !a[0].End.Charged {
			t.Errorf("attempts %+v", a)
		}
		if a[0].Claim.Nonce != c.Nonce || a[0].Claim.Fence == 0 {
			t.Errorf("claim %+v, commit's nonce %s", a[0].Claim, c.Nonce)
		}
		r, err := bundle.ReadRecord[bundle.Result](t.Context(), l.store, l.keys.Result("a/1", 0))
		if err != nil || r.Attempt != 1 || r.Attempts != 1 || r.Path != "runs/lab/"+files {
			t.Errorf("result %+v, %v", r, err)
		}
		if m.queue.said("done") != 1 || m.queue.said("retry")+m.queue.said("bury")+m.queue.said("abandon") != 0 {
			t.Errorf("said %v", m.queue.answers)
		}
		if m.rt.prepared != 1 || m.rt.closed != 1 {
			t.Errorf("environment prepared %d times and closed %d times, want once", m.rt.prepared, m.rt.closed)
		}
	})
}

// Events of a trial come in order.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		l.finish(l.machine().start())
		var got []string
		for _, e := range l.events.list {
			got = append(got, strings.TrimSpace(string(e.Kind)+" "+e.Phase))
			if e.Run != "lab" || e.TaskID != "a" || e.TrialID != l.rows[0].TrialID || e.Attempt != 1 || e.At.IsZero() {
				t.Errorf("event %+v", e)
			}
		}
		want := []string{"started", "phase provision", "phase setup", "phase agent", "phase grade", "phase collect", "phase teardown", "phase upload", "committed"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRedeliveryFindsTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		l.finish(l.machine().start())
		again := queue.Job{ID: queue.ID{Trial: l.rows[0].TrialID, Epoch: 1, Release: 2}, Body: dispatch.Body(bundle.PlanRef{})}
		if _, err := l.queue.Publish(t.Context(), "lab", []queue.Job{again}); err != nil {
			t.Fatal(err)
		}
		m := l.machine()
		wrote := writes(m)
		l.events.add(worker.Event{}) // finish looks again
		m.start()
		l.events.kind(worker.Found, 1)
		l.finish(m)
		if got := wrote(); len(got) != 0 || len(l.attempts(0)) != 1 || m.rt.prepared != 0 {
			t.Errorf("wrote %q, %d attempts, prepared %d times; want nothing but an answer", got, len(l.attempts(0)), m.rt.prepared)
		}
		if m.queue.said("done") != 1 {
			t.Errorf("said %v", m.queue.answers)
		}
	})
}

// Trials of several runs share what a run has, and each run has its own.
func TestEnvironmentsAreSharedByRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "repeats: 20\n", passes("a"), passes("b"))
		m := l.machine(func(c *worker.Config) { c.Slots = 8 })
		l.finish(m.start())
		if n := len(l.commits()); n != 40 {
			t.Errorf("%d commits, want 40", n)
		}
		if m.rt.prepared != 1 || m.rt.closed != 1 {
			t.Errorf("prepared %d times, closed %d times", m.rt.prepared, m.rt.closed)
		}
		if got := m.store.Calls(bundletest.OpGet); got > 40+3 {
			t.Errorf("%d gets, want one look for each commit, and run, plan part and pack once", got)
		}
	})
}

// A job that makes no sense is buried, and takes nothing down.
func TestJobsThatMakeNoSense(t *testing.T) {
	for name, body := range map[string]string{
		"no reference":    `{"part":`,
		"another trial":   `{"part":0,"row":1}`,
		"a row too far":   `{"part":0,"row":7}`,
		"a part too far":  `{"part":3,"row":0}`,
		"something added": `{"part":0,"row":0}!`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "", passes("a"), passes("b"))
				if _, err := l.queue.PurgeRun(t.Context(), "lab"); err != nil {
					t.Fatal(err)
				}
				job := queue.Job{ID: queue.ID{Trial: l.rows[0].TrialID, Epoch: 1, Release: 2}, Body: []byte(body)}
				if _, err := l.queue.Publish(t.Context(), "lab", []queue.Job{job}); err != nil {
					t.Fatal(err)
				}
				m := l.machine().start()
				e := l.events.kind(worker.Dropped, 1)
				l.finish(m)
				dead, err := l.queue.DeadLetters(t.Context(), "lab", 0)
				if err != nil || len(dead) != 1 || dead[0].Reason != e.Why || e.Why == "" {
					t.Errorf("dead letters %+v, %v", dead, err)
				}
				if n := len(l.attempts(0)) + len(l.commits()); n != 0 {
					t.Errorf("%d attempts and commits, want none", n)
				}
			})
		})
	}
}

// A slot is free when its trial's sandbox is gone, whatever becomes of the upload; but so
// many bundles wait for theirs as the spool takes, and no more.
func TestUploadsHoldNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"), passes("b"), passes("c"), passes("d"), passes("e"))
		m := l.machine(func(c *worker.Config) { c.Slots, c.Spool = 1, 3 })
		gate := make(chan struct{})
		m.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Do: bundletest.Pass(), Hit: func(bundletest.Op, string) { <-gate }})
		m.start()
		time.Sleep(time.Minute) // of the bubble
		if s := m.Status(); s.Uploading != 3 || s.Running != 1 || l.events.count(worker.Started) != 4 {
			t.Errorf("%d were started, status %+v; want 4 in one slot: three in the spool, and one that waits for room there", l.events.count(worker.Started), s)
		}
		if n := l.events.count(worker.Committed); n != 0 {
			t.Errorf("%d were committed before they were uploaded", n)
		}
		close(gate)
		l.finish(m)
		for n := range l.rows {
			l.commit(n)
		}
	})
}

// By its events a worker never runs more trials than it has slots: what is only uploaded
// says so before another begins.
func TestEventsShowNoMoreThanTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"), passes("b"), passes("c"), passes("d"))
		const slots = 1
		l.finish(l.machine(func(c *worker.Config) { c.Slots = slots }).start())
		l.events.until(func(list []worker.Event) bool {
			running, uploading := map[string]bool{}, map[string]bool{}
			for _, e := range list {
				switch {
				case e.Kind == worker.Started:
					running[e.TrialID] = true
				case e.Kind == worker.Phase && e.Phase == worker.PhaseUpload:
					delete(running, e.TrialID)
					uploading[e.TrialID] = true
				case e.Kind == worker.Committed && !uploading[e.TrialID]:
					t.Errorf("%s was committed and never uploaded", e.TaskID)
				}
				if len(running) > slots {
					t.Errorf("%d trials run in %d slots", len(running), slots)
				}
			}
			if len(uploading) != len(l.rows) {
				t.Errorf("%d of %d trials were uploaded", len(uploading), len(l.rows))
			}
			return true
		})
	})
}
