// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/worker"
)

// rewriteRun changes what run.yaml says, behind everybody's back.
func (l *lab) rewriteRun() {
	l.t.Helper()
	body, err := dispatch.EncodeRun(l.rec)
	if err == nil {
		err = l.store.Put(l.t.Context(), l.keys.RunFile(), bytes.NewReader(body), int64(len(body)))
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// Every kind of call fails now and then, with and without its effect.
func TestStoreThatFailsNowAndThen(t *testing.T) {
	for _, op := range []bundletest.Op{bundletest.OpCreate, bundletest.OpPut, bundletest.OpGet, bundletest.OpList} {
		for name, do := range map[string]bundletest.Action{"fails": bundletest.Fail(bundle.ErrUnavailable), "loses its answer": bundletest.DropAnswer()} {
			t.Run(string(op)+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLab(t, "", passes("a"))
					m := l.machine()
					m.store.Inject(bundletest.Fault{Op: op, After: 1, Times: 2, Do: do})
					m.store.Inject(bundletest.Fault{Op: op, Times: 1, Do: do})
					l.finish(m.start())
					l.commit(0)
					if as := l.attempts(0); len(as) != 1 {
						t.Errorf("%d attempts, want one: a store that comes back costs none", len(as))
					}
				})
			})
		}
	}
}

// The store goes away while bundles are uploaded: slots go on until the spool is full,
// and everything is committed when it is back, without a second attempt.
func TestStoreAwayDuringUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tasks []task
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			tasks = append(tasks, task{id: id, agent: "signal " + id})
		}
		l := newLab(t, "", tasks...)
		m := l.machine(func(c *worker.Config) { c.Slots, c.Spool = 1, 2 })
		back := m.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Do: bundletest.Fail(bundle.ErrUnavailable)})
		m.start()
		for _, id := range []string{"a", "b", "c"} {
			l.await(id) // two in the spool, and one that waits for a place there
		}
		synctest.Wait()
		time.Sleep(time.Minute) // of the bubble
		if n := l.control.Reached("", "d"); n != 0 {
			t.Error("the fourth trial began although the spool is full")
		}
		back()
		l.finish(m)
		for n := range tasks {
			l.commit(n)
			l.checkRetries(n, 1)
		}
	})
}

// The store does not come back in time. The evidence is kept on the worker, nothing is
// charged or committed without it, and the trial is tried again ever more seldom.
func TestStoreAwayForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		m := l.machine(func(c *worker.Config) { c.StoreRetry = time.Minute })
		back := m.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Key: "/trials/", Do: bundletest.Fail(bundle.ErrUnavailable)})
		m.start()
		start := time.Now()
		if e := l.events.kind(worker.Retrying, 1); e.Outcome.Phase != "upload" {
			t.Errorf("outcome %+v", e.Outcome)
		}
		if took := time.Since(start); took < time.Minute || took > 2*time.Minute {
			t.Errorf("given up after %s, want a minute", took)
		}
		l.events.kind(worker.Retrying, 4)
		back()
		l.finish(m)
		if c := l.commit(0); !c.Outcome.Scored || c.Attempt < 5 {
			t.Errorf("commit of attempt %d, %+v", c.Attempt, c.Outcome)
		}
		for _, a := range l.attempts(0) {
			if a.End == nil || a.End.Charged != a.End.Committed {
				t.Errorf("end %+v", a.End)
			}
		}
		kept := filepath.Join(m.dir, "unsent", l.rows[0].TrialID+".1", bundle.IndexName)
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("evidence of the first attempt: %v", err)
		}
	})
}

// A store that is full says so at once, and is not asked in vain for minutes.
func TestStoreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		m := l.machine()
		m.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Key: "/trials/", Times: 1, Do: bundletest.Fail(bundle.ErrNoSpace)})
		l.finish(m.start())
		a := l.attempts(0)
		if len(a) != 2 || a[0].End == nil || !strings.Contains(a[0].End.Outcome.Detail, "full") {
			t.Errorf("attempts %+v", a)
		}
		l.commit(0)
	})
}

// The commit can't be written: nobody knows whether it is there. The next delivery finds
// out.
func TestCommitUnknown(t *testing.T) {
	for name, do := range map[string]bundletest.Action{"not there": bundletest.Fail(errors.New("odd")), "there": bundletest.DropAnswer()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "", passes("a"))
				m := l.machine(func(c *worker.Config) { c.StoreRetry = time.Second })
				m.store.Inject(bundletest.Fault{Op: bundletest.OpCreate, Key: "/commits/", Times: 1, Do: do})
				m.store.Inject(bundletest.Fault{Op: bundletest.OpGet, Key: "/commits/", After: 1, Times: 20, Do: bundletest.Fail(bundle.ErrUnavailable)})
				l.finish(m.start())
				c := l.commit(0)
				if as := l.attempts(0); c.Attempt != len(as) {
					t.Errorf("commit of attempt %d of %d", c.Attempt, len(as))
				}
			})
		})
	}
}

// A pack that is not what its name says is our trouble, and never a score.
func TestBadPack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		key := bundle.PackKey(l.rec.Packs[0].SHA256)
		body := l.read(key)
		if err := l.store.Put(t.Context(), key, strings.NewReader(body[:len(body)/2]), -1); err != nil {
			t.Fatal(err)
		}
		l.finish(l.machine().start())
		c := l.commit(0)
		if c.Outcome.TerminationReason != bundle.ReasonInfraError || c.Grade.Score != nil || c.Grade.Scored {
			t.Errorf("outcome %+v, grade %+v", c.Outcome, c.Grade)
		}
		l.checkRetries(0, 3)
	})
}

// Fetching a pack outlasts a store that is away for a while.
func TestStoreAwayDuringFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		m := l.machine()
		m.store.Inject(bundletest.Fault{Op: bundletest.OpGet, Key: "packs/", Times: 3, Do: bundletest.Cut(10)})
		m.store.Inject(bundletest.Fault{Op: bundletest.OpGet, Key: "packs/", Times: 20, Do: bundletest.Fail(bundle.ErrUnavailable)})
		l.finish(m.start())
		l.checkRetries(0, 1)
	})
}
