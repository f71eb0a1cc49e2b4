// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/runtime"
)

// place is one that misbehaves on request.
type place struct {
	mu     sync.Mutex
	list   []runtime.Resource
	fail   map[string]error // of Destroy, by name
	listed error
	gone   []string
	pruned []runtime.Pruned
	during func() // while something is destroyed
}

func (p *place) List(context.Context) ([]runtime.Resource, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list), p.listed
}

func (p *place) Destroy(_ context.Context, h runtime.Handle) error {
	if p.during != nil {
		p.during()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fail[h.ID]; err != nil {
		if err == errPanic {
			panic(err)
		}
		return err
	}
	p.gone = append(p.gone, h.ID)
	p.list = slices.DeleteFunc(p.list, func(r runtime.Resource) bool { return r.Handle == h })
	return nil
}

var errPanic = errors.New("boom")

func (p *place) went() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(slices.Values(p.gone))
}

type prunable struct{ *place }

func (p prunable) Prune(_ context.Context, opts runtime.PruneOptions) ([]runtime.Pruned, error) {
	return p.pruned, nil
}

func named(name string, change ...func(*runtime.Resource)) runtime.Resource {
	r := leftover()
	r.Name, r.Handle.ID, r.Labels.Trial = name, name, name
	for _, c := range change {
		c(&r)
	}
	return r
}

// leases is a queue; an error is its answer to every question.
type leases struct {
	by    map[string]string
	err   error
	asked []string
}

func (l *leases) Holder(_ context.Context, run, trial string) (string, error) {
	l.asked = append(l.asked, run+"/"+trial)
	return l.by[trial], l.err
}

// clock is noon for ever; Wait returns for each value in ticks.
type clock struct {
	ticks chan struct{}
	waits chan time.Duration
}

func (clock) Now() time.Time                         { return noon }
func (clock) Vary(d, by time.Duration) time.Duration { return d + by }
func (c clock) Wait(ctx context.Context, d time.Duration) {
	select {
	case c.waits <- d:
	case <-ctx.Done():
		return
	}
	select {
	case <-c.ticks:
	case <-ctx.Done():
	}
}

func sweeper(t *testing.T, c Config) (*Sweeper, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	c.Store, c.Log = ours, zerolog.New(&log)
	if c.Clock == nil {
		c.Clock = clock{}
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s, &log
}

func TestOneFailureStopsNobodyElse(t *testing.T) {
	p := &place{
		list: []runtime.Resource{
			named("a"), named("b"), named("c"), named("d"),
			named("lives", func(r *runtime.Resource) { r.Live = true }),
			named("foreign", func(r *runtime.Resource) { r.Labels.Store = "another" }),
		},
		fail: map[string]error{"b": errors.New("it is stuck"), "c": errPanic},
	}
	broken := &place{listed: errors.New("the engine is away")}
	pruner := prunable{&place{pruned: []runtime.Pruned{{Kind: "image", ID: "i"}}}}
	s, log := sweeper(t, Config{Sources: []Source{
		{Name: "broken", Place: broken, Alone: true}, {Name: "p", Place: p, Alone: true}, {Name: "q", Place: pruner},
	}})
	got := s.Begin(t.Context())
	if diff := cmp.Diff(Summary{Seen: 6, Removed: 2, Pruned: 1, Failed: 3}, got); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "d"}, p.went()); diff != "" {
		t.Errorf("went (-want +got):\n%s", diff)
	}
	for _, want := range []string{"it is stuck", "panic: boom", "broken: the engine is away", `"seen":6,"removed":2,"pruned":1,"failed":3`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	// The next one tries again what failed.
	p.fail = nil
	s.Begin(t.Context())
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, p.went()); diff != "" {
		t.Errorf("went (-want +got):\n%s", diff)
	}
	if got, want := s.Totals(), (Summary{Seen: 10, Removed: 4, Pruned: 2, Failed: 4}); got != want {
		t.Errorf("totals %+v; want %+v", got, want)
	}
}

// On a fleet the queue is asked, about those alone of which nothing else is known, and once
// for all that belongs to a trial.
func TestTheQueueIsAsked(t *testing.T) {
	second := named("mine")
	second.Handle = runtime.Handle{Runtime: "docker", Kind: "volume", ID: "mine-volume"}
	p := &place{list: []runtime.Resource{
		named("mine"), second, named("taken"), named("free"),
		named("expired", func(r *runtime.Resource) { r.Labels.ExpiresAt = noon }),
		named("lives", func(r *runtime.Resource) { r.Live = true }),
	}}
	q := &leases{by: map[string]string{"mine": "w1", "taken": "w2"}}
	s, _ := sweeper(t, Config{Leases: q, Sources: []Source{{Name: "p", Place: p}}})
	s.Begin(t.Context())
	if diff := cmp.Diff([]string{"expired", "free", "taken"}, p.went()); diff != "" {
		t.Errorf("went (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"r/mine", "r/taken", "r/free"}, q.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// A queue that is away is asked once, and what it might have said is waited for.
func TestAQueueThatIsAwayLetsNothingGo(t *testing.T) {
	p := &place{list: []runtime.Resource{
		named("a"), named("b"), named("expired", func(r *runtime.Resource) { r.Labels.ExpiresAt = noon }),
	}}
	q := &leases{err: errors.New("queue unreachable")}
	s, log := sweeper(t, Config{Leases: q, Sources: []Source{{Name: "p", Place: p}}})
	got := s.Begin(t.Context())
	if want := (Summary{Seen: 3, Removed: 1, Failed: 1}); got != want {
		t.Errorf("summary %+v; want %+v\n%s", got, want, log)
	}
	if diff := cmp.Diff([]string{"expired"}, p.went()); diff != "" || len(q.asked) != 1 {
		t.Errorf("went (-want +got):\n%s\nasked %v; want one question", diff, q.asked)
	}
}

// At the start, alone, age says nothing. Later, and where others work, it does.
func TestTheAgeGuard(t *testing.T) {
	young := func(r *runtime.Resource) { r.Created = noon.Add(-time.Second) }
	own := &place{list: []runtime.Resource{named("own", young)}}
	shared := &place{list: []runtime.Resource{named("shared", young)}}
	s, _ := sweeper(t, Config{Leases: &leases{}, Sources: []Source{{Name: "own", Place: own, Alone: true}, {Name: "shared", Place: shared}}})
	s.pass(t.Context(), s.MinAge)
	if went := append(own.went(), shared.went()...); len(went) > 0 {
		t.Errorf("went %v; want nothing yet", went)
	}
	s.Begin(t.Context())
	if went := append(own.went(), shared.went()...); !slices.Equal(went, []string{"own"}) {
		t.Errorf("went %v; want own", went)
	}
}

func TestRunSweepsFromTimeToTime(t *testing.T) {
	p := &place{list: []runtime.Resource{named("first")}}
	c := clock{ticks: make(chan struct{}), waits: make(chan time.Duration)}
	s, _ := sweeper(t, Config{Clock: c, Interval: 5 * time.Minute, Sources: []Source{{Name: "p", Place: p, Alone: true}}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	for i, want := range []string{"first", "second"} {
		if d := <-c.waits; d != 6*time.Minute {
			t.Errorf("it waits %s; want the interval and a fifth of it, as the clock varies it", d)
		}
		if got := len(p.went()); got != i {
			t.Errorf("before sweep %d %d are gone", i+1, got)
		}
		p.mu.Lock()
		p.list = []runtime.Resource{named(want)}
		p.mu.Unlock()
		c.ticks <- struct{}{}
	}
	<-c.waits // the second sweep is over
	if diff := cmp.Diff([]string{"first", "second"}, p.went()); diff != "" {
		t.Errorf("went (-want +got):\n%s", diff)
	}
	cancel()
	<-done
}

// What the time doesn't suffice for is left to the next sweep.
func TestASweepIsBounded(t *testing.T) {
	p := &place{}
	for i := range 20 {
		p.list = append(p.list, named(fmt.Sprint("t", i)))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	p.during = func() { cancel(errors.New("time is over")) }
	s, _ := sweeper(t, Config{Parallel: 1, Sources: []Source{{Name: "p", Place: p, Alone: true}}})
	got := s.Begin(ctx)
	if want := (Summary{Seen: 20, Removed: 1, Failed: 19}); got != want {
		t.Errorf("summary %+v; want %+v: what was begun ends, nothing more is begun", got, want)
	}
}

func TestConfigIsChecked(t *testing.T) {
	_, err := New(Config{Interval: -1, Time: -1, Parallel: -1})
	for _, want := range []string{"uuid", "interval", "time", "parallel"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q in it", err, want)
		}
	}
}

func TestTheClockVaries(t *testing.T) {
	for range 1000 {
		if d := (wallClock{}).Vary(10, 2); d < 8 || d > 12 {
			t.Fatalf("10 varied by 2 is %d", d)
		}
	}
}
