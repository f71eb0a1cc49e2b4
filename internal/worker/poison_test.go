// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/scripted"
)

func guarded(slots int) func(*worker.Config) {
	return func(c *worker.Config) { c.Slots, c.PoisonAfter = slots, 3 }
}

// atWork waits until the agent of an attempt of row n works.
func (l *lab) atWork(n, attempt int) {
	l.events.until(func(list []worker.Event) bool {
		return slices.ContainsFunc(list, func(e worker.Event) bool {
			return e.Kind == worker.Phase && e.Phase == "agent" && e.TrialID == l.rows[n].TrialID && e.Attempt == attempt
		})
	})
	l.await(l.rows[n].TaskID)
}

// deadly is a task whose agent goes on until its worker dies.
func deadly(id string) task { return task{id: id, agent: "block " + id} }

// buried checks that row n was committed as poison after so many attempts that died.
func (l *lab) buried(n, attempts int) {
	l.t.Helper()
	c := l.commit(n)
	if c.Attempt != attempts || c.Outcome.TerminationReason != bundle.ReasonPoison || c.Outcome.FailureClass != bundle.InfraFailure ||
		c.Outcome.Status != bundle.Errored || c.Outcome.Scored || c.Grade.Score != nil {
		l.t.Errorf("commit of attempt %d with %+v, want attempt %d with poison and no score", c.Attempt, c.Outcome, attempts)
	}
	if !strings.Contains(c.Outcome.Detail, "3 workers died that ran it") {
		l.t.Errorf("detail %q", c.Outcome.Detail)
	}
	as := l.attempts(n)
	for _, a := range as[:len(as)-1] {
		if a.End != nil {
			l.t.Errorf("attempt %d has the end %+v", a.Claim.Attempt, a.End)
		}
	}
	dead, err := l.queue.DeadLetters(l.t.Context(), "lab", 0)
	if err != nil || len(dead) != 1 || !strings.Contains(dead[0].Reason, "poison") {
		l.t.Errorf("dead letters %+v, %v", dead, err)
	}
}

// died makes it look as if so many workers had died with row n that ran others too.
func (l *lab) died(n, times int) {
	l.t.Helper()
	row := l.rows[n]
	for range times {
		_, _, err := bundle.ClaimAttempt(l.t.Context(), l.store, l.keys, bundle.Claim{
			TrialID: row.TrialID, TaskID: row.TaskID, TrialIndex: row.TrialIndex, Epoch: 1, Worker: "gone", Nonce: bundle.NewNonce(), At: time.Now(),
		})
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// A trial whose worker died runs again at once, beside others that take long.
func TestVictimRunsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "retry: {max_attempts: 1}\n", holds("long"), passes("victim"))
		l.died(1, 1)
		m := l.machine(guarded(3)).start()
		l.events.kind(worker.Committed, 1)
		if c := l.commit(1); c.Attempt != 2 || !c.Outcome.Scored {
			t.Errorf("attempt %d, %+v", c.Attempt, c.Outcome)
		}
		l.control.Release("", "agent")
		l.finish(m)
	})
}

// Who died twice by bad luck is not buried: it runs alone, and counts.
func TestUnluckyTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "retry: {max_attempts: 1}\n", passes("unlucky"), passes("other"))
		l.died(0, 2)
		l.finish(l.machine(guarded(3)).start())
		if c := l.commit(0); c.Attempt != 3 || !c.Outcome.Scored || !l.attempts(0)[2].Claim.Alone {
			t.Errorf("attempt %d, %+v", c.Attempt, c.Outcome)
		}
		l.commit(1)
	})
}

// A trial that kills its worker is tried on three, and the fourth buries it without
// running it. What is beside it in the queue is done.
func TestPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "retry: {max_attempts: 1}\n", deadly("a"), passes("b"))
		for n := 1; n <= 3; n++ {
			m := l.machine(guarded(1)).start()
			l.atWork(0, n)
			l.control.Rearm("", "a")
			m.die()
		}
		last := l.machine(guarded(1))
		opened := ""
		last.rt.open = func(_ context.Context, spec *runtime.Spec) error {
			opened += spec.Labels.Task
			return nil
		}
		l.finish(last.start())
		l.buried(0, 4)
		if strings.Contains(opened, "a") {
			t.Error("the trial was run once more before it was buried")
		}
		if c := l.commit(1); !c.Outcome.Scored || c.Attempt != 1 {
			t.Errorf("the other: %+v", c)
		}
	})
}

// Trials that ran beside one that kills run beside others once more. Whoever is there when a
// second worker dies is a suspect, and cleared by running alone: while a suspect runs,
// nothing else does.
func TestPoisonSparesNeighbours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", deadly("a"),
			task{id: "b", agent: "on-attempt 1 block b\non-attempt 2 block b\nsleep 1m"}, task{id: "c", agent: "on-attempt 1 block c\non-attempt 2 block c\nsleep 1m"})
		for n := 1; n <= 2; n++ {
			m := l.machine(guarded(3)).start()
			for row := range l.rows {
				l.atWork(row, n)
			}
			for _, name := range []string{"a", "b", "c"} {
				l.control.Rearm("", name)
			}
			m.die()
		}
		var most atomic.Int32
		watch := func(m *machine) *machine {
			m.rt.exec = func(runtime.Command) { most.Store(max(most.Load(), int32(len(l.provider.Left())))) }
			return m
		}
		l.provider = &scripted.Provider{} // what died with the machine is not looked at
		m := watch(l.machine(guarded(3))).start()
		l.atWork(0, 3)
		if r := m.Unready(); len(r) != 1 || r[0].Check != "alone" || !strings.Contains(r[0].Detail, l.rows[0].TrialID) {
			t.Errorf("unready because of %+v", r)
		}
		l.control.Rearm("", "a")
		m.die()
		l.provider = &scripted.Provider{}
		l.finish(watch(l.machine(guarded(3))).start())
		l.buried(0, 4)
		if n := most.Load(); n != 1 {
			t.Errorf("%d sandboxes at once, want one of each suspect alone", n)
		}
		for n := 1; n < 3; n++ {
			as := l.attempts(n)
			if c := l.commit(n); !c.Outcome.Scored || c.Attempt != 3 || as[0].Claim.Alone || as[1].Claim.Alone || !as[2].Claim.Alone {
				t.Errorf("%s: attempt %d, %+v, claims %+v", c.TaskID, c.Attempt, c.Outcome, as)
			}
		}
	})
}

// A worker that dies under many is no reason to bury any of them, however often.
func TestDeathsInCompanyBuryNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", task{id: "a", agent: "print hello"}, passes("b"))
		// As if workers had died with it that ran others too.
		l.died(0, 10)
		l.finish(l.machine(guarded(2)).start())
		if c := l.commit(0); !c.Outcome.Scored || c.Attempt != 11 {
			t.Errorf("attempt %d, %+v", c.Attempt, c.Outcome)
		}
	})
}

// Deaths of an earlier epoch are forgiven, and so are all where they are not counted.
func TestDeathsThatDontCount(t *testing.T) {
	for name, change := range map[string]struct {
		epoch int
		after int
	}{"another epoch": {2, 3}, "not counted": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "", passes("a"))
				for range 5 {
					_, _, err := bundle.ClaimAttempt(t.Context(), l.store, l.keys, bundle.Claim{
						TrialID: l.rows[0].TrialID, TaskID: "a", Epoch: change.epoch, Worker: "gone", Nonce: bundle.NewNonce(), Alone: true, At: time.Now(),
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				l.finish(l.machine(func(c *worker.Config) { c.PoisonAfter = change.after }).start())
				if c := l.commit(0); !c.Outcome.Scored {
					t.Errorf("%+v", c.Outcome)
				}
			})
		})
	}
}

// A suspect waits for those that run already, and nothing is begun ahead of it; another
// suspect goes to another worker. Who is stopped meanwhile gives it back.
func TestSuspectWaitsForTheOthers(t *testing.T) {
	for _, hurry := range []bool{false, true} {
		t.Run(fmt.Sprintf("hurry %v", hurry), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "", task{id: "long", agent: "on-attempt 1 block long"}, passes("suspect"), passes("next"))
				l.died(1, 2)
				if _, err := l.queue.PurgeRun(t.Context(), "lab"); err != nil {
					t.Fatal(err)
				}
				m := l.machine(guarded(3)).start()
				for row := range l.rows { // one after another
					if err := l.put(t.Context(), row, 2); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute) // of the bubble
				}
				if n := l.events.count(worker.Committed); n != 0 || len(l.attempts(1)) != 2 {
					t.Errorf("%d committed, attempts of the suspect: %d; it was to wait", n, len(l.attempts(1)))
				}
				if hurry {
					m.Hurry()
					m.end()
					m = l.machine(guarded(3)).start()
				} else {
					l.control.Release("", "long")
				}
				l.finish(m)
				for n := range l.rows {
					l.commit(n)
				}
				if as := l.attempts(1); len(as) != 3 || !as[2].Claim.Alone {
					t.Errorf("attempts of the suspect: %+v", as)
				}
			})
		})
	}
}

// A store that takes no commit, and no end either, makes a worker look bad that lives. Its
// trials aren't blamed, and what they did counts once the store takes it.
func TestRefusedRecordsAreNoDeaths(t *testing.T) {
	for name, keys := range map[string][]string{
		"commits":          {"/commits/"},
		"commits and ends": {"/commits/", ".end.json"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "", passes("a"), passes("b"))
				m := l.machine(guarded(2))
				var back []func()
				for _, key := range keys {
					back = append(back, m.store.Inject(bundletest.Fault{Op: bundletest.OpCreate, Key: key, Do: bundletest.Fail(errors.New("403 AccessDenied"))}))
				}
				m.start()
				l.events.kind(worker.Retrying, 12) // six a trial, twice as many as bury it
				for _, heal := range back {
					heal()
				}
				l.finish(m)
				for n := range 2 {
					c, as := l.commit(n), l.attempts(n)
					if !c.Grade.BinaryPass || c.Attempt != len(as) || len(as) > 12 {
						t.Errorf("%d attempts, the %dth was committed with %+v", len(as), c.Attempt, c.Outcome)
					}
					for _, a := range as[:len(as)-1] {
						if a.Claim.Alone || len(keys) == 1 && (a.End == nil || a.End.Charged || a.End.Committed) {
							t.Errorf("attempt %d has the claim %+v and the end %+v", a.Claim.Attempt, a.Claim, a.End)
						}
					}
				}
			})
		})
	}
}
