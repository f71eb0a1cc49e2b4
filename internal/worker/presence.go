// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/queue"
)

const (
	// announceEvery renews what the roster has.
	announceEvery = queue.PresenceTTL / 3
	// announcePause is between two announcements, however much happens.
	announcePause = 2 * time.Second
	// announceTimeout bounds one.
	announceTimeout = 5 * time.Second
	// tallyFor is how long a run is kept in the tallies of which nothing ends.
	tallyFor = time.Hour
)

// presence is what the worker tells of itself on the queue's roster.
type presence struct {
	mu      sync.Mutex
	running map[string]queue.Running // by trial
	ended   map[string]tally         // by run
	changed chan struct{}            // holds one when there is something new
}

type tally struct {
	queue.Tally
	last time.Time
}

func newPresence() *presence {
	return &presence{running: map[string]queue.Running{}, ended: map[string]tally{}, changed: make(chan struct{}, 1)}
}

// note takes an event.
func (p *presence) note(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case Started:
		p.running[e.TrialID] = queue.Running{
			Run: e.Run, TaskID: e.TaskID, TrialIndex: e.TrialIndex, TrialID: e.TrialID,
			Attempt: e.Attempt, Phase: "start", Since: e.At.UTC(),
		}
	case Phase:
		if r, ok := p.running[e.TrialID]; ok {
			r.Phase = e.Phase
			p.running[e.TrialID] = r
		}
	default:
		delete(p.running, e.TrialID)
		p.count(e)
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// count adds an attempt that ended by itself.
func (p *presence) count(e Event) {
	tried := e.Kind == Committed || e.Kind == Retrying && e.Outcome.Status != "" && !e.Capacity
	if !tried {
		return
	}
	t := p.ended[e.Run]
	t.Ended++
	if e.Outcome.FailureClass == bundle.InfraFailure {
		t.Infra++
	}
	t.last = e.At
	p.ended[e.Run] = t
}

// fill adds what happens here to what is announced.
func (p *presence) fill(a *queue.Presence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.SortedFunc(maps.Values(p.running), func(a, b queue.Running) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.TrialID, b.TrialID))
	})
	for _, r := range all {
		if r.Phase != PhaseUpload {
			a.Busy++
		}
	}
	a.Running = all[:min(len(all), queue.MaxRunning)]
	a.Ended = map[string]queue.Tally{}
	for run, t := range p.ended {
		if time.Since(t.last) > tallyFor {
			delete(p.ended, run)
			continue
		}
		a.Ended[run] = t.Tally
	}
}

// appear puts the worker on the queue's roster, where it has one, until the returned
// function is called. serving ends when it takes no more.
func (w *Worker) appear(serving context.Context) (leave func()) {
	roster, ok := w.Queue.(queue.Roster)
	if !ok {
		return func() {}
	}
	since := time.Now().UTC()
	ctx, cancel := context.WithCancel(context.WithoutCancel(serving))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			w.announce(ctx, roster, since, serving.Err() != nil)
			w.awaitNews(ctx)
		}
	}()
	return func() {
		cancel()
		<-done
		ctx, cancel := context.WithTimeout(context.WithoutCancel(serving), announceTimeout)
		defer cancel()
		if err := roster.Withdraw(ctx, w.Name); err != nil {
			w.Log.Debug().Err(err).Msg("roster could not be told that this worker ends")
		}
	}
}

// awaitNews returns when there is something to announce, or it is time to renew.
func (w *Worker) awaitNews(ctx context.Context) {
	pause := time.NewTimer(announcePause)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return
	case <-pause.C:
	}
	if w.settles() > 0 { // which is over soon, and is to be told so
		return
	}
	renew := time.NewTimer(announceEvery - announcePause)
	defer renew.Stop()
	select {
	case <-ctx.Done():
	case <-w.presence.changed:
	case <-renew.C:
	}
}

// settles is for how long the queue gives nothing to anybody. It is no reason not to be
// ready: the worker asks, and gets what there is when that is over.
func (w *Worker) settles() time.Duration {
	if q, ok := w.Queue.(queue.Settling); ok {
		return q.Settles()
	}
	return 0
}

func (w *Worker) announce(ctx context.Context, roster queue.Roster, since time.Time, draining bool) {
	a := queue.Presence{
		Worker: w.Name, Pool: w.Pool, Offers: w.offers(), Slots: w.Slots, Version: w.Version,
		Since: since, Draining: draining, Refuses: w.refusals.told(),
	}
	for _, r := range w.Unready() {
		if r.Check != checkDraining {
			a.Holds = append(a.Holds, r.Detail)
		}
	}
	if left := w.settles(); left > 0 {
		a.Holds = append(a.Holds, fmt.Sprintf("settles for %s more, so that whoever held leases comes first",
			max(left.Round(time.Second), time.Second)))
	}
	w.presence.fill(&a)
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	if err := roster.Announce(ctx, a); err != nil && ctx.Err() == nil {
		w.Log.Debug().Err(err).Msg("presence could not be announced")
	}
}
