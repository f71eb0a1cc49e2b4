// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue"
)

// A worker is on the roster for as long as it works, with what it runs and what has ended.
func TestPresence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "retry: {max_attempts: 2, min_backoff: 10ms, max_backoff: 10ms}\n",
			task{id: "flaky", agent: "first 1 lose-sandbox"}, task{id: "held", agent: "block held"})
		q := l.connect()
		roster, ok := q.(queue.Roster)
		if !ok {
			t.Fatal("the queue has no roster")
		}
		m := l.machine(func(c *worker.Config) { c.Queue, c.Slots, c.Version = q, 2, "v7" }).start()
		l.await("held")
		l.events.kind(worker.Committed, 1)
		time.Sleep(10 * time.Second) // in the bubble: what is new has been announced by then
		list, err := roster.Workers(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%d workers, %v", len(list), err)
		}
		p := list[0]
		if p.Worker != "w1" || p.Slots != 2 || p.Busy != 1 || p.Version != "v7" || p.Pool != "default" || p.Draining {
			t.Errorf("%+v", p)
		}
		if len(p.Running) != 1 || p.Running[0].TaskID != "held" || p.Running[0].Phase != "agent" || p.Running[0].Run != "lab" {
			t.Errorf("running %+v", p.Running)
		}
		if got := p.Ended["lab"]; got != (queue.Tally{Ended: 2, Infra: 1}) {
			t.Errorf("ended %+v", got)
		}
		l.control.Release("", "held")
		l.finish(m)
		if list, err := roster.Workers(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%d workers after the end, %v", len(list), err)
		}
	})
}

// A run that was ended stops what runs of it, without a commit; the attempt says why.
func TestEndedRunStopsItsTrials(t *testing.T) {
	for name, c := range map[string]struct {
		decision bundle.Control
		reason   string
	}{
		"cancelled": {bundle.Control{Kind: bundle.ControlCancel, By: "ada"}, bundle.ReasonCancelled},
		"past its deadline": {bundle.Control{
			Kind: bundle.ControlStop, By: "deadline", Args: map[string]any{bundle.ArgReason: bundle.ReasonDeadline},
		}, bundle.ReasonDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "", task{id: "held", agent: "block held"})
				m := l.machine().start()
				l.await("held")
				_, err := bundle.AppendControl(t.Context(), l.store, l.keys, func([]bundle.Control) (bundle.Control, error) { return c.decision, nil })
				if err != nil {
					t.Fatal(err)
				}
				if _, err := l.queue.PurgeRun(t.Context(), "lab"); err != nil {
					t.Fatal(err)
				}
				l.events.kind(worker.Dropped, 1)
				l.finish(m)
				if n := len(l.commits()); n > 0 {
					t.Errorf("%d commits", n)
				}
				as := l.attempts(0)
				if len(as) != 1 || as[0].End == nil || as[0].End.Charged {
					t.Fatalf("%+v", as)
				}
				o := as[0].End.Outcome
				if o.Status != bundle.Cancelled || o.TerminationReason != c.reason || o.FailureClass != bundle.LimitFailure {
					t.Errorf("%+v", o)
				}
			})
		})
	}
}
