// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// ledger counts who did what in a storm.
type ledger struct {
	mu     sync.Mutex
	fences map[string]queue.Fence // the newest of each trial
	done   map[string]int
	ended  chan struct{}
	want   int
}

func newLedger(want int) *ledger {
	return &ledger{fences: map[string]queue.Fence{}, done: map[string]int{}, ended: make(chan struct{}), want: want}
}

// took notes a lease. Two goroutines may note two leases of a trial in the wrong
// order, so it only tells whether a fence came twice.
func (g *ledger) took(l queue.Lease) (fresh bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := l.Job().Run + "/" + l.Job().Trial
	old := g.fences[key]
	g.fences[key] = max(old, l.Fence())
	return l.Fence() != old
}

func (g *ledger) finished(l queue.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done[l.Job().Run+"/"+l.Job().Trial]++
	if len(g.done) == g.want {
		select {
		case <-g.ended:
		default:
			close(g.ended)
		}
	}
}

// workers starts n workers that lease from the values in turn and hand each
// lease to do, until everything is done.
func (s *suite) workers(n int, g *ledger, values []queue.Queue, do func(worker int, l queue.Lease)) {
	ctx, cancel := context.WithTimeout(s.Context(), 4*s.Patience)
	defer cancel()
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			for {
				l, err := values[w%len(values)].Lease(ctx, request())
				switch {
				case ctx.Err() != nil:
					return
				case errors.Is(err, queue.ErrUnreachable):
					continue
				case err != nil:
					s.Errorf("worker %d: lease: %v", w, err)
					cancel()
					return
				}
				if !g.took(l) {
					s.Errorf("fence %d of %s came twice", l.Fence(), l.Job().ID)
				}
				do(w, l)
			}
		})
	}
	select {
	case <-g.ended:
	case <-ctx.Done():
	}
	cancel()
	wg.Wait()
	if len(g.done) != g.want {
		s.Errorf("storm ended with %d of %d done", len(g.done), g.want)
	}
}

func storm(s *suite) {
	const runs, each = 3, 200
	values := []queue.Queue{s.Queue, s.Open(s.T), s.Open(s.T)}
	g := newLedger(runs * each)
	var wg sync.WaitGroup
	for i, id := range []string{"r1", "r2", "r3"} {
		s.open(id)
		wg.Go(func() {
			for part := range 4 { // two publishers race for the same jobs
				batch := jobs("t", each)[part/2*each/2 : (part/2+1)*each/2]
				if _, err := values[(i+part)%len(values)].Publish(s.soon(), id, batch); err != nil {
					s.Errorf("publish: %v", err)
				}
			}
		})
	}
	s.workers(12, g, values, func(w int, l queue.Lease) {
		if err := l.Extend(s.soon()); err != nil {
			s.Errorf("worker %d: extend: %v", w, err)
		}
		if err := l.Done(s.soon()); err != nil {
			s.Errorf("worker %d: done: %v", w, err)
		}
		g.finished(l)
	})
	wg.Wait()
	for trial, n := range g.done {
		if n != 1 {
			s.Errorf("%s was done %d times, want once", trial, n)
		}
	}
	for _, id := range []string{"r1", "r2", "r3"} {
		s.wantStats(id, queue.Stats{})
	}
}

// stormOfDeaths lets every fifth holder vanish, and some come back too late.
func stormOfDeaths(s *suite) {
	const n = 60
	s.open("r")
	s.publish("r", jobs("t", n)...)
	g := newLedger(n)
	var mu sync.Mutex
	var stale []queue.Lease
	died := map[string]bool{}
	s.workers(8, g, []queue.Queue{s.Queue, s.Open(s.T)}, func(w int, l queue.Lease) {
		mu.Lock()
		dies := !died[l.Job().Trial] && len(stale) < n/5
		if dies {
			died[l.Job().Trial] = true
			stale = append(stale, l)
		}
		mu.Unlock()
		switch {
		case dies:
		case w%3 == 0 && l.Job().Release == 1:
			if err := l.Retry(s.soon(), 10*time.Millisecond, nil); err != nil && !errors.Is(err, queue.ErrLost) {
				s.Errorf("worker %d: retry: %v", w, err)
			}
		default:
			if err := l.Done(s.soon()); err != nil {
				if !errors.Is(err, queue.ErrLost) {
					s.Errorf("worker %d: done: %v", w, err)
				}
				return
			}
			g.finished(l)
		}
	})
	for _, l := range stale {
		s.wantErr(l.Done(s.soon()), queue.ErrLost, "done of a holder that was thought dead")
	}
	for trial, times := range g.done {
		if times != 1 {
			s.Errorf("%s was done %d times, want once", trial, times)
		}
	}
	s.wantStats("r", queue.Stats{})
}
