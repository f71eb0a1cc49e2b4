// SPDX-License-Identifier: Apache-2.0

package producer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

func (l *lab) give(rec manifest.RunRecord, o producer.Order) (*producer.Answer, error) {
	o.Run, o.By = rec.RunID, "ada"
	return l.producer().Give(l.t.Context(), rec, o)
}

func (l *lab) must(rec manifest.RunRecord, o producer.Order) *producer.Answer {
	l.t.Helper()
	a, err := l.give(rec, o)
	if err != nil {
		l.t.Fatal(err)
	}
	return a
}

// queued is the run as the queue has it.
func (l *lab) queued(run string) queue.Run {
	l.t.Helper()
	runs, err := l.queue.ListRuns(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, r := range runs {
		if r.ID == run {
			return r
		}
	}
	l.t.Fatalf("run %s is not open in the queue", run)
	return queue.Run{}
}

func (l *lab) countDecisions(run string) int {
	l.t.Helper()
	records, err := bundle.ReadControl(l.t.Context(), l.store, bundle.Keys{Run: run})
	if err != nil {
		l.t.Fatal(err)
	}
	return len(records)
}

func f64(v float64) *float64 { return &v }

var (
	pause    = producer.Order{Kind: bundle.ControlPause}
	resume   = producer.Order{Kind: bundle.ControlResume}
	cancel   = producer.Order{Kind: bundle.ControlCancel}
	high     = producer.Order{Kind: bundle.ControlPriority, Priority: "high"}
	breaker  = producer.Order{Kind: bundle.ControlPause, Reason: bundle.PauseBreaker}
	budget   = producer.Order{Kind: bundle.ControlPause, Reason: bundle.ReasonBudget, Detail: "spent"}
	deadline = producer.Order{Kind: bundle.ControlStop, Reason: bundle.ReasonDeadline}
	richer   = producer.Order{Kind: bundle.ControlLimits, Limits: bundle.LimitChanges{MaxBudgetUSD: f64(9)}}
	longer   = producer.Order{Kind: bundle.ControlLimits, Limits: bundle.LimitChanges{DeadlineS: f64(0)}}
)

// What each order does in each state: decides, finds it decided, or is refused.
func TestRules(t *testing.T) {
	const done, said = "decided", "said"
	for _, c := range []struct {
		name   string
		before []producer.Order
		order  producer.Order
		want   string // done, said, or what the refusal has in it
		state  string
	}{
		{"pause", nil, pause, done, "paused"},
		{"pause twice", []producer.Order{pause}, pause, said, "paused"},
		{"a person takes over the breaker's pause", []producer.Order{breaker}, pause, done, "paused"},
		{"the breaker leaves a person's pause", []producer.Order{pause}, breaker, said, "paused"},
		{"pause what is cancelled", []producer.Order{cancel}, pause, "was cancelled by ada", ""},
		{"resume what is not paused", nil, resume, said, "open"},
		{"resume", []producer.Order{pause}, resume, done, "open"},
		{"resume after the breaker", []producer.Order{breaker}, resume, done, "open"},
		{"resume what is cancelled", []producer.Order{cancel}, resume, done, "open"},
		{"resume without a budget", []producer.Order{budget}, resume, "is paused for its budget: spent", ""},
		{"a budget lets go", []producer.Order{budget}, richer, done, "open"},
		{"a budget leaves a person's pause", []producer.Order{budget, pause}, richer, done, "paused"},
		{"the same budget", []producer.Order{richer}, richer, said, "open"},
		{"limits of what is cancelled", []producer.Order{cancel}, richer, "was cancelled", ""},
		{"a deadline lets go", []producer.Order{deadline}, longer, done, "open"},
		{"no limit", nil, producer.Order{Kind: bundle.ControlLimits}, "no limit is given", ""},
		{"a limit that can't be", nil, producer.Order{Kind: bundle.ControlLimits, Limits: bundle.LimitChanges{DeadlineS: f64(-1)}}, "deadline_s -1", ""},
		{"cancel", nil, cancel, done, "cancelled"},
		{"cancel twice", []producer.Order{cancel}, cancel, said, "cancelled"},
		{"cancel what is paused", []producer.Order{pause}, cancel, done, "cancelled"},
		{"cancel what is past its deadline", []producer.Order{deadline}, cancel, done, "cancelled"},
		{"stop what is cancelled", []producer.Order{cancel}, deadline, said, "cancelled"},
		{"priority", nil, high, done, "open"},
		{"the same priority", []producer.Order{high}, high, said, "open"},
		{"no priority", nil, producer.Order{Kind: bundle.ControlPriority, Priority: "highest"}, `priority "highest": want low, normal or high`, ""},
		{"priority of what is cancelled", []producer.Order{cancel}, high, "was cancelled", ""},
		{"retry of nothing in particular", nil, producer.Order{Kind: bundle.ControlRetry}, "which trials?", ""},
		{"retry of what is cancelled", []producer.Order{cancel}, producer.Order{Kind: bundle.ControlRetry, Select: producer.Selection{Classes: []string{"infra"}}}, "was cancelled", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, "a", "b")
			rec := l.submit(l.draft(""), "r").Record
			for _, o := range c.before {
				l.must(rec, o)
			}
			before := l.countDecisions("r")
			a, err := l.give(rec, c.order)
			if c.state == "" {
				refused, ok := errors.AsType[*producer.RefusedError](err)
				if !ok || !strings.Contains(refused.Text, c.want) {
					t.Fatalf("got %v, want a refusal with %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			after := l.countDecisions("r")
			if a.State != c.state || a.Changed != (c.want == done) || after-before != map[string]int{done: 1, said: 0}[c.want] {
				t.Errorf("%+v with %d new decisions; want %s and %s", *a, after-before, c.want, c.state)
			}
			if held := c.state != "open"; l.queued("r").Paused != held {
				t.Errorf("the queue holds the run: %v", !held)
			}
			if left := l.live("r"); (left == 0) != (c.state == "cancelled") {
				t.Errorf("%d trials in the queue", left)
			}
		})
	}
}

// A run of which all is done has nothing left to decide.
func TestNothingToDecideWhenAllIsDone(t *testing.T) {
	l := newLab(t, "a")
	rec := l.submit(l.draft(""), "r").Record
	rows, _ := l.planned(rec)
	l.commit("r", rows...)
	for _, o := range []producer.Order{pause, resume, cancel, high} {
		if _, err := l.give(rec, o); err == nil || !strings.Contains(err.Error(), "run r is complete") {
			t.Errorf("%s: %v", o.Kind, err)
		}
	}
}

// The decision comes first: a queue that can't be told hears of it when the order is given
// again.
func TestTheStoreHasItFirst(t *testing.T) {
	l := newLab(t, "a", "b")
	rec := l.submit(l.draft(""), "r").Record
	p := l.producer()
	p.Queue = deafQueue{l.queue}
	_, err := p.Give(t.Context(), rec, cancel)
	untold, ok := errors.AsType[*producer.UntoldError](err)
	if !ok || !errors.Is(err, queue.ErrUnreachable) || !strings.Contains(err.Error(), "decision 1 is in the store") {
		t.Fatal(err)
	}
	if a := untold.Answer; !a.Changed || a.Rev != 1 || a.Queued || a.Unpublished || a.State != "cancelled" || !strings.Contains(a.Untold, "unreachable") {
		t.Errorf("%+v", *a)
	}
	if l.live("r") != 2 {
		t.Error("the queue was told")
	}
	a := l.must(rec, cancel)
	if a.Changed || a.Rev != 1 || a.Dropped != 2 || l.live("r") != 0 {
		t.Errorf("%+v", *a)
	}
	// And a store that takes nothing leaves the queue as it is.
	l = newLab(t, "a")
	rec = l.submit(l.draft(""), "r").Record
	l.store.Inject(bundletest.Fault{Op: bundletest.OpCreate, Do: bundletest.Fail(bundle.ErrUnavailable)})
	if _, err := l.give(rec, pause); err == nil || l.queued("r").Paused {
		t.Errorf("%v, paused %v", err, l.queued("r").Paused)
	}
}

// What puts trials into a queue that can't be told is decided, and says that it has to be
// given again; what a governor does by itself says so too.
func TestUnpublished(t *testing.T) {
	class := producer.Order{Kind: bundle.ControlRetry, Select: producer.Selection{Tasks: []string{"a"}}}
	for _, c := range []struct {
		name        string
		before      []producer.Order
		order       producer.Order
		unpublished bool
	}{
		{"pause", nil, pause, false},
		{"priority", nil, high, false},
		{"limits", nil, richer, false},
		{"a budget lets go", []producer.Order{budget}, richer, false},
		{"a deadline lets go", []producer.Order{deadline}, longer, true},
		{"resume", []producer.Order{pause}, resume, true},
		{"resume what is not paused", nil, resume, true},
		{"retry", nil, class, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, "a", "b")
			rec := l.submit(l.draft(""), "r").Record
			rows, _ := l.planned(rec)
			l.commit("r", rows[0])
			for _, o := range c.before {
				l.must(rec, o)
			}
			live := l.live("r")
			p := l.producer()
			p.Queue = deafQueue{l.queue}
			_, err := p.Give(t.Context(), rec, c.order)
			untold, ok := errors.AsType[*producer.UntoldError](err)
			if !ok || untold.Answer.Queued || untold.Answer.Unpublished != c.unpublished {
				t.Fatalf("%v, %+v", err, untold)
			}
			// Given again it is told, and decides nothing.
			decided := l.countDecisions("r")
			a, err := l.give(rec, c.order)
			if err != nil || a.Changed || !a.Queued || a.Unpublished || a.Untold != "" || l.countDecisions("r") != decided {
				t.Errorf("%+v, %v", a, err)
			}
			if c.unpublished && l.live("r") < max(live, 1) {
				t.Errorf("%d trials in the queue, of %d before", l.live("r"), live)
			}
			if c.name == "a deadline lets go" && l.live("r") != 1 {
				t.Errorf("%d trials in the queue", l.live("r"))
			}
		})
	}
}

type deafQueue struct{ producer.Queue }

func (deafQueue) OpenRun(context.Context, queue.Run) error { return queue.ErrUnreachable }

func (deafQueue) PauseRun(context.Context, string) error { return queue.ErrUnreachable }

// A producer without a queue only decides.
func TestOnlyDecided(t *testing.T) {
	l := newLab(t, "a")
	rec := l.submit(l.draft(""), "r").Record
	p := l.producer()
	p.Queue = nil
	for _, o := range []producer.Order{pause, resume, richer, high, cancel} {
		a, err := p.Give(t.Context(), rec, o)
		if err != nil || !a.Changed || a.Queued {
			t.Errorf("%s: %+v, %v", o.Kind, a, err)
		}
	}
	if l.queued("r").Paused || l.live("r") != 1 {
		t.Error("the queue was told")
	}
}

// What a cancel purged doesn't come again by a submission that was under way.
func TestCancelDuringSubmission(t *testing.T) {
	l := newLab(t, numbered(20_000)...) // several parts
	p := l.producer()
	parts := 0
	p.OnProgress = func(producer.Progress) {
		if parts++; parts == 1 {
			rec, err := bundle.AppendControl(t.Context(), l.store, bundle.Keys{Run: "r"}, func([]bundle.Control) (bundle.Control, error) {
				return bundle.Control{Kind: bundle.ControlCancel, By: "ada"}, nil
			})
			if err != nil || rec.Rev != 1 {
				t.Error(err)
			}
		}
	}
	d := l.draft("")
	if d.Plan.Parts < 2 {
		t.Fatalf("%d parts; too few to say anything", d.Plan.Parts)
	}
	_, err := p.Submit(t.Context(), d, producer.Options{RunID: "r"})
	if refused, ok := errors.AsType[*producer.RefusedError](err); !ok || !strings.Contains(refused.Text, "run r was cancelled by ada") {
		t.Fatal(err)
	}
	if left := l.live("r"); left != 0 {
		t.Errorf("%d trials in the queue", left)
	}
	if _, err := l.producer().Submit(t.Context(), d, producer.Options{RunID: "r"}); err == nil {
		t.Error("it was submitted again")
	}
}

// Submitting again leaves a run paused, or refuses to.
func TestSubmitWhatIsPaused(t *testing.T) {
	l := newLab(t, "a")
	d := l.draft("")
	rec := l.submit(d, "r").Record
	l.must(rec, pause)
	if sub := l.submit(d, "r"); !sub.Continued || !l.queued("r").Paused {
		t.Errorf("%+v, paused %v", sub, l.queued("r").Paused)
	}
	_, err := l.producer().Submit(t.Context(), d, producer.Options{RunID: "r", NotPaused: true})
	if paused, ok := errors.AsType[*producer.PausedError](err); !ok || paused.Control.By != "ada" {
		t.Error(err)
	}
}

// The newest unfinished run is found by those who go on; what was ended is none.
func TestEndedRunsAreNotGoneOnWith(t *testing.T) {
	l := newLab(t, "a")
	d := l.draft("")
	rec := l.submit(d, "r").Record
	for _, c := range []struct {
		order producer.Order
		found bool
	}{{pause, true}, {cancel, false}, {resume, true}} {
		l.must(rec, c.order)
		found, err := producer.FindUnfinished(t.Context(), l.store, d.Plan.Digest, nil)
		if err != nil || (found != nil) != c.found {
			t.Errorf("after %s: %v, %v", c.order.Kind, found, err)
		}
	}
}
