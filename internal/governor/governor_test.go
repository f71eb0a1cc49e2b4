// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/memqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// lab is a run of four trials in a store, and a queue with a governor.
type lab struct {
	t     *testing.T
	store bundle.Store
	queue *memqueue.Queue
	keys  bundle.Keys
	rec   manifest.RunRecord
	rows  []bundle.PlanRow
	clock time.Time
	told  []bundle.Control // by OnDecision
}

func newLab(t *testing.T, limits manifest.Limits) *lab {
	t.Helper()
	l := &lab{t: t, store: memstore.New(), keys: bundle.Keys{Run: "r"}, clock: start}
	l.freshQueue()
	for i := range 4 {
		l.rows = append(l.rows, bundle.PlanRow{TaskID: fmt.Sprint(i), TrialID: fmt.Sprintf("%032x", i), Pack: "ab"})
	}
	w := bundle.NewPlanWriter(bundle.PlanLimits{}, func(part int, body []byte, _ []bundle.PlanRow) error {
		return l.store.Put(t.Context(), l.keys.PlanPart(part), bytes.NewReader(body), int64(len(body)))
	})
	for _, row := range l.rows {
		if _, err := w.Add(row); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	l.rec = manifest.RunRecord{
		SchemaVersion: 1, RunID: "r", CreatedAt: start, Plan: manifest.Plan{Tasks: 4, Trials: 4, Parts: 1},
		Run: manifest.Run{Version: 1, Name: "r", Runtime: manifest.RuntimeConfig{Type: "scripted"}, Limits: limits},
	}
	body, err := dispatch.EncodeRun(l.rec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.store.Create(t.Context(), l.keys.RunFile(), body); err != nil {
		t.Fatal(err)
	}
	if _, err := l.producer().Rebuild(t.Context(), l.rec); err != nil {
		t.Fatal(err)
	}
	return l
}

// freshQueue is a queue that knows nothing.
func (l *lab) freshQueue() {
	l.t.Helper()
	q, err := memqueue.New(memqueue.Config{})
	if err != nil {
		l.t.Fatal(err)
	}
	l.queue = q
}

func (l *lab) producer() *producer.Producer {
	return &producer.Producer{Store: l.store, Queue: l.queue, Log: zerolog.Nop()}
}

func (l *lab) governor(name string) *Governor {
	l.t.Helper()
	g, err := New(Config{
		Store: l.store, Queue: l.queue, Name: name, Log: zerolog.Nop(),
		OnDecision: func(_ string, c bundle.Control) { l.told = append(l.told, c) },
		now:        func() time.Time { return l.clock },
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return g
}

func (l *lab) look(g *Governor) {
	l.t.Helper()
	if err := g.Look(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) state() bundle.ControlState {
	l.t.Helper()
	s, err := dispatch.Control(l.t.Context(), l.store, "r")
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// decide writes a decision that nobody tells the queue.
func (l *lab) decide(o producer.Order) {
	l.t.Helper()
	p := l.producer()
	p.Queue = nil
	o.By = "ada"
	if _, err := p.Give(l.t.Context(), l.rec, o); err != nil {
		l.t.Fatal(err)
	}
}

// inQueue is the run there, and how many of its jobs are live.
func (l *lab) inQueue() (queue.Run, int) {
	l.t.Helper()
	runs, err := l.queue.ListRuns(l.t.Context())
	if err != nil || len(runs) != 1 {
		l.t.Fatalf("%d runs, %v", len(runs), err)
	}
	st, err := l.queue.Stats(l.t.Context(), "r")
	if err != nil {
		l.t.Fatal(err)
	}
	return runs[0], st.Live()
}

// count announces a worker that has counted so many attempts.
func (l *lab) count(worker string, since time.Time, ended, infra int) {
	l.t.Helper()
	err := l.queue.Announce(l.t.Context(), queue.Presence{
		Worker: worker, Slots: 1, Since: since, Ended: map[string]queue.Tally{"r": {Ended: ended, Infra: infra}},
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// end records the end of an attempt that isn't the one that counts.
func (l *lab) end(row, attempt int, usd float64) {
	l.t.Helper()
	err := bundle.EndAttempt(l.t.Context(), l.store, l.keys, l.rows[row].TrialID, bundle.AttemptEnd{
		Attempt: attempt, Epoch: 1, CostUSD: &usd, LatencyS: 1.5,
		Outcome: bundle.Outcome{Status: bundle.Errored, TerminationReason: bundle.ReasonAPIError, FailureClass: bundle.ProviderFailure},
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

func TestTheQueueIsToldWhatWasDecided(t *testing.T) {
	l := newLab(t, manifest.Limits{})
	g := l.governor("one")
	l.look(g)
	if r, live := l.inQueue(); r.Paused || live != 4 {
		t.Fatalf("%+v, %d live", r, live)
	}
	n := 2
	l.decide(producer.Order{Kind: bundle.ControlPause})
	l.decide(producer.Order{Kind: bundle.ControlPriority, Priority: "high"})
	l.decide(producer.Order{Kind: bundle.ControlLimits, Limits: bundle.LimitChanges{MaxInFlight: &n}})
	l.look(g)
	if r, live := l.inQueue(); !r.Paused || r.Priority != queue.High || r.Limits.MaxInFlight != 2 || live != 4 {
		t.Errorf("%+v, %d live", r, live)
	}
	l.decide(producer.Order{Kind: bundle.ControlResume})
	l.look(g)
	if r, _ := l.inQueue(); r.Paused {
		t.Error("the run is still paused")
	}
	l.decide(producer.Order{Kind: bundle.ControlCancel})
	l.look(g)
	if r, live := l.inQueue(); !r.Paused || live != 0 {
		t.Errorf("%+v, %d live", r, live)
	}
	l.look(g)
	l.gone()
	if len(l.told) > 0 {
		t.Errorf("the governor decided something: %+v", l.told)
	}
}

func TestDeadline(t *testing.T) {
	l := newLab(t, manifest.Limits{Deadline: manifest.Duration(time.Hour)})
	g := l.governor("one")
	l.clock = start.Add(time.Hour - time.Second)
	l.look(g)
	if l.state().Ended != nil {
		t.Fatal("stopped before its deadline")
	}
	l.clock = start.Add(time.Hour)
	l.look(g)
	ended := l.state().Ended
	if ended == nil || ended.Kind != bundle.ControlStop || ended.Reason() != bundle.ReasonDeadline || ended.By != "deadline" {
		t.Fatalf("%+v", ended)
	}
	if _, live := l.inQueue(); live != 0 || len(l.told) != 1 {
		t.Errorf("%d live, told %+v", live, l.told)
	}
	l.look(g)
	if got := l.state().Rev; got != 1 {
		t.Errorf("%d decisions", got)
	}
}

func TestBudget(t *testing.T) {
	l := newLab(t, manifest.Limits{MaxBudgetUSD: 1})
	g := l.governor("one")
	l.end(0, 1, 0.6)
	l.look(g)
	if l.state().Held() {
		t.Fatal("paused within its budget")
	}
	l.end(0, 2, 0.4)
	l.clock = l.clock.Add(time.Minute)
	l.look(g)
	paused := l.state().Paused
	if paused.Reason() != bundle.ReasonBudget || paused.Detail() != "agents have spent 1.00 USD of 1.00 USD" {
		t.Fatalf("%+v", paused)
	}
	if r, live := l.inQueue(); !r.Paused || live != 4 {
		t.Errorf("%+v, %d live; want all of them to wait", r, live)
	}
	more := 1.5
	l.decide(producer.Order{Kind: bundle.ControlLimits, Limits: bundle.LimitChanges{MaxBudgetUSD: &more}})
	l.look(g)
	if r, _ := l.inQueue(); r.Paused {
		t.Error("another budget didn't let it go on")
	}
	l.end(1, 1, 0.5)
	l.clock = l.clock.Add(time.Minute)
	l.look(g)
	if l.state().Paused.Reason() != bundle.ReasonBudget {
		t.Error("the second budget isn't kept")
	}
}

func TestBreaker(t *testing.T) {
	early, late := start.Add(-time.Hour), start.Add(time.Second)
	type counts struct{ ended, infra int }
	for _, c := range []struct {
		name    string
		breaker manifest.Breaker
		first   counts   // what the worker had counted when the governor came
		then    []counts // a minute apart
		trips   bool
	}{
		{"most of many fail", manifest.Breaker{}, counts{}, []counts{{20, 11}}, true},
		{"half of many fail", manifest.Breaker{}, counts{}, []counts{{20, 10}}, false},
		{"too few to say", manifest.Breaker{}, counts{}, []counts{{19, 19}}, false},
		{"what was before doesn't count", manifest.Breaker{}, counts{100, 100}, []counts{{110, 110}}, false},
		{"added up within the window", manifest.Breaker{}, counts{10, 10}, []counts{{20, 20}, {30, 30}}, true},
		{"longer ago than the window", manifest.Breaker{}, counts{}, []counts{{15, 15}, {15, 15}, {15, 15}, {15, 15}, {15, 15}, {15, 15}, {20, 20}}, false},
		{"off", manifest.Breaker{MaxInfraShare: 1}, counts{}, []counts{{100, 100}}, false},
		{"its own numbers", manifest.Breaker{MaxInfraShare: 0.2, MinAttempts: 4}, counts{}, []counts{{4, 1}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, manifest.Limits{Breaker: c.breaker})
			g := l.governor("one")
			l.count("w", early, c.first.ended, c.first.infra)
			l.look(g)
			for _, n := range c.then {
				l.clock = l.clock.Add(time.Minute)
				l.count("w", early, n.ended, n.infra)
				l.look(g)
			}
			paused := l.state().Paused
			if (paused != nil) != c.trips {
				t.Fatalf("paused %+v, want %v", paused, c.trips)
			}
			if c.trips && (paused.Reason() != bundle.PauseBreaker || !strings.Contains(paused.Detail(), "failed for want of infrastructure")) {
				t.Errorf("%+v", paused.Args)
			}
		})
	}
	t.Run("a worker that came later counts whole, and after a resume all begins anew", func(t *testing.T) {
		l := newLab(t, manifest.Limits{})
		g := l.governor("one")
		l.look(g)
		l.count("new", late, 30, 30)
		l.look(g) // the first sample
		l.clock = l.clock.Add(time.Second)
		l.count("new", late, 60, 60)
		l.look(g)
		if l.state().Paused == nil {
			t.Fatal("not paused")
		}
		l.decide(producer.Order{Kind: bundle.ControlResume})
		l.look(g)
		l.count("new", late, 70, 70)
		l.look(g)
		if l.state().Paused != nil {
			t.Error("paused for what was before")
		}
	})
}

// One governor works, and another takes its place.
func TestOneOfMany(t *testing.T) {
	l := newLab(t, manifest.Limits{Deadline: manifest.Duration(time.Hour)})
	one, two := l.governor("one"), l.governor("two")
	l.look(one)
	l.clock = start.Add(2 * time.Hour)
	l.look(two)
	if l.state().Ended != nil {
		t.Fatal("both work")
	}
	one.resign(t.Context())
	l.look(two)
	if l.state().Ended == nil {
		t.Error("nobody works")
	}
}

// A queue that was wiped has the run again, as it was decided, without what is done.
func TestAWipedQueueIsFilled(t *testing.T) {
	l := newLab(t, manifest.Limits{})
	g := l.governor("one")
	l.look(g)
	row := l.rows[1]
	if _, _, err := bundle.WriteCommit(t.Context(), l.store, l.keys, bundle.Commit{TrialID: row.TrialID, TaskID: row.TaskID, Epoch: 1, Attempt: 1, Nonce: "n"}); err != nil {
		t.Fatal(err)
	}
	l.decide(producer.Order{Kind: bundle.ControlPause})
	l.freshQueue()
	g.Queue, g.producer.Queue = l.queue, l.queue
	l.look(g)
	if r, live := l.inQueue(); !r.Paused || live != 3 {
		t.Errorf("%+v, %d live", r, live)
	}
	// What was cancelled doesn't come again.
	l.decide(producer.Order{Kind: bundle.ControlCancel})
	l.freshQueue()
	g.Queue, g.producer.Queue = l.queue, l.queue
	l.look(g)
	if runs, _ := l.queue.ListRuns(t.Context()); len(runs) > 0 {
		t.Errorf("%+v", runs)
	}
}

// deaf is a queue that can't be told anything of a run.
type deaf struct{ *memqueue.Queue }

var errDeaf = errors.New("deaf")

func (deaf) PauseRun(context.Context, string) error   { return errDeaf }
func (deaf) OpenRun(context.Context, queue.Run) error { return errDeaf }

// What was decided holds although the queue could not be told, and is said once.
func TestADecisionTheQueueIsNotTold(t *testing.T) {
	l := newLab(t, manifest.Limits{MaxBudgetUSD: 1})
	g := l.governor("one")
	g.Queue, g.producer.Queue = deaf{l.queue}, deaf{l.queue}
	l.end(0, 1, 2)
	for range 2 {
		if err := g.Look(t.Context()); !errors.Is(err, errDeaf) {
			t.Errorf("the look went with %v, want %v", err, errDeaf)
		}
	}
	if len(l.told) != 1 || l.told[0].Kind != bundle.ControlPause || l.state().Paused == nil {
		t.Errorf("told %+v, paused %+v", l.told, l.state().Paused)
	}
}

// settling is a queue that says for how long it is new.
type settling struct {
	*memqueue.Queue
	left time.Duration
}

func (s *settling) Settles() time.Duration { return s.left }

// A run that was submitted and lost between two looks is found in the store, once it shows
// that the queue began anew. One from before the governor isn't its to begin.
func TestARunLostBetweenTwoLooks(t *testing.T) {
	for name, c := range map[string]struct {
		created time.Duration // after the governor began
		want    int
	}{
		"submitted meanwhile":        {time.Second, 4},
		"by a clock that is behind":  {-30 * time.Second, 4},
		"from before, and abandoned": {-time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, manifest.Limits{})
			l.clock = l.rec.CreatedAt.Add(-c.created)
			l.freshQueue()
			q := &settling{Queue: l.queue}
			g := l.governor("one")
			g.Queue, g.producer.Queue = q, q
			l.look(g) // it is not in the queue, and nothing tells
			if runs, _ := q.ListRuns(t.Context()); len(runs) > 0 {
				t.Fatalf("%+v", runs)
			}
			q.left = time.Minute
			l.look(g)
			q.left = 0
			l.look(g)
			if st, err := q.Stats(t.Context(), "r"); st.Live() != c.want || err != nil && c.want > 0 {
				t.Errorf("%+v, %v; want %d live", st, err, c.want)
			}
			l.look(g)
		})
	}
}

func TestEnds(t *testing.T) {
	l := newLab(t, manifest.Limits{})
	e := NewEnds(l.store, "r")
	l.end(0, 1, 0.25)
	l.end(1, 1, 0.5)
	running := bundle.Claim{TrialID: l.rows[2].TrialID, Epoch: 1, Worker: "w", Nonce: bundle.NewNonce()}
	if _, _, err := bundle.ClaimAttempt(t.Context(), l.store, l.keys, running); err != nil {
		t.Fatal(err)
	}
	skip := func(trial string, attempt int) bool { return trial == l.rows[1].TrialID && attempt == 1 }
	s, err := e.Look(t.Context(), skip)
	if err != nil || s.Attempts != 1 || s.Seconds != 1.5 || s.CostUSD != 0.25 || s.ByReason[bundle.ReasonAPIError] != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err = e.Look(t.Context(), nil); err != nil || s.Attempts != 2 || s.CostUSD != 0.75 || s.WastedUSD != 0.75 || s.Seconds != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	usd := 2.0
	if err := bundle.EndAttempt(t.Context(), l.store, l.keys, l.rows[3].TrialID, bundle.AttemptEnd{Attempt: 1, Epoch: 1, Committed: true, CostUSD: &usd}); err != nil {
		t.Fatal(err)
	}
	if s, err = e.Look(t.Context(), nil); err != nil || s.Attempts != 2 || s.CostUSD != 2.75 || s.WastedUSD != 0.75 {
		t.Errorf("with one that counts: %+v, %v", s, err)
	}
}

// An attempt without an end that another one came after was lost, and by whom is told.
func TestLostAttempts(t *testing.T) {
	l := newLab(t, manifest.Limits{})
	claim := func(row int, worker string, after time.Duration) {
		t.Helper()
		c := bundle.Claim{TrialID: l.rows[row].TrialID, Epoch: 1, Worker: worker, Nonce: bundle.NewNonce(), At: start.Add(after)}
		if _, _, err := bundle.ClaimAttempt(t.Context(), l.store, l.keys, c); err != nil {
			t.Fatal(err)
		}
	}
	claim(0, "w1", 0)
	claim(0, "w2", 2*time.Second)
	claim(0, "w3", 5*time.Second)
	l.end(0, 3, 0)
	claim(1, "w1", 0)
	claim(1, "w2", time.Second)
	e := NewEnds(l.store, "r")
	for range 2 { // the second time from memory
		s, err := e.Look(t.Context(), nil)
		want := map[string]Lost{"w1": {Attempts: 2, Seconds: 3}, "w2": {Attempts: 1, Seconds: 3}}
		if err != nil || s.Unended != 1 || !maps.Equal(s.Lost, want) {
			t.Errorf("%+v, %v", s, err)
		}
	}
	counts := func(trial string, attempt int) bool { return trial == l.rows[1].TrialID }
	s, err := e.Look(t.Context(), counts)
	want := map[string]Lost{"w1": {Attempts: 1, Seconds: 2}, "w2": {Attempts: 1, Seconds: 3}}
	if err != nil || s.Unended != 0 || !maps.Equal(s.Lost, want) {
		t.Errorf("where attempts without an end were committed: %+v, %v", s, err)
	}
}
