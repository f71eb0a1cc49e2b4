// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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

// settling is a queue that gives nothing until some time.
type settling struct {
	queue.Queue
	queue.Roster
	until time.Time
}

func (s settling) Settles() time.Duration { return max(0, time.Until(s.until)) }

// While the queue settles the roster says for how long, and soon afterwards that it is over.
func TestPresenceSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		q := l.connect()
		roster := q.(queue.Roster)
		m := l.machine(func(c *worker.Config) { c.Queue = settling{q, roster, time.Now().Add(9 * time.Second)} }).start()
		for _, c := range []struct {
			after time.Duration
			want  []string
		}{
			{time.Second, []string{"settles for 9s more, so that whoever held leases comes first"}},
			{4 * time.Second, []string{"settles for 5s more, so that whoever held leases comes first"}},
			{6 * time.Second, nil},
		} {
			time.Sleep(c.after) // in the bubble
			list, err := roster.Workers(t.Context())
			if err != nil || len(list) != 1 {
				t.Fatalf("%d workers, %v", len(list), err)
			}
			if diff := cmp.Diff(c.want, list[0].Holds); diff != "" {
				t.Errorf("%s later (-want +got)\n%s", c.after, diff)
			}
		}
		if reasons := m.Unready(); len(reasons) > 0 {
			t.Errorf("not ready: %v", reasons)
		}
		l.finish(m)
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
