// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// coldProbes is how many runs that had nothing last time a slot asks, at least,
// when it becomes free.
const coldProbes = 8

// counter counts what is going on at the same time.
type counter = atomic.Int64

// Lease implements [queue.Consumer].
//
// A free slot asks the runs that may have jobs, as their turns come, and some of
// the others. If nothing was there it joins the idle group of the classes that it
// serves, looks once more, and sleeps until a wake comes to the group, a run on
// the board changes, or it is time to ask a run unasked. Whoever publishes,
// resumes, raises a cap or takes a job with more behind it sends one wake; a wake
// that finds nobody costs nothing, for then nobody is idle.
func (q *Queue) Lease(ctx context.Context, req queue.Request) (queue.Lease, error) {
	req = req.WithDefaults()
	if err := req.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	if q.life.Err() != nil {
		return nil, queue.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.life, cancel)()
	q.slots.Add(1)
	defer q.slots.Add(-1)
	s := &slot{q: q, req: req}
	l, err := s.wait(inner)
	s.leave()
	switch {
	case l != nil:
		if l.delivery.pending > 0 {
			q.wake(l.run.Run)
		}
		return l, nil
	case q.life.Err() != nil:
		return nil, queue.ErrClosed
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("lease: %w", err)
}

// slot is one waiting Lease.
type slot struct {
	q     *Queue
	req   queue.Request
	group *idle
}

func (s *slot) wait(ctx context.Context) (*lease, error) {
	// A worker that is never idle looks at the runs that it knows to be empty too:
	// what got lost, or came back, is told by nobody.
	s.q.board.stir(s.req, s.probeEvery())
	var trouble time.Time // since when nobody answers
	cold := s.coldBudget()
	for {
		changed := s.q.board.change()
		l, err := s.round(ctx, cold)
		cold = 0
		if l != nil || ctx.Err() != nil {
			return l, ctx.Err()
		}
		var joined bool
		if err == nil {
			joined, err = s.join()
		}
		switch {
		case err == nil:
			trouble = time.Time{}
		case !errors.Is(err, queue.ErrUnreachable):
			return nil, err
		case trouble.IsZero():
			trouble = time.Now()
		case time.Since(trouble) > s.q.cfg.CallTimeout:
			return nil, err
		}
		switch {
		case joined:
			// What was published while nobody of us was in the group woke nobody.
			cold = coldProbes
		case err != nil:
			s.sleep(ctx, nil, rand.N(100*time.Millisecond))
		default:
			s.sleep(ctx, changed, s.nextLook())
		}
	}
}

// sleep ends with a wake, a change, or the time.
func (s *slot) sleep(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case wake := <-s.wakes():
		s.q.board.touch(string(wake.Data))
	case <-timer.C:
		s.q.board.stir(s.req, 0)
	}
}

// round asks the hot runs, and as many cold ones, until one gives a job.
func (s *slot) round(ctx context.Context, cold int) (*lease, error) {
	tried := map[string]bool{}
	for n := 0; ctx.Err() == nil; n++ {
		r, ok := s.q.board.next(s.req, tried, n < cold)
		if !ok {
			return nil, nil
		}
		tried[r.ID] = true
		if l, err := s.ask(ctx, r); l != nil || err != nil {
			return l, err
		}
	}
	return nil, ctx.Err()
}

// coldBudget grows with how many runs there are for each waiting slot, or with a
// single worker and hundreds of runs some would wait long.
func (s *slot) coldBudget() int {
	return max(coldProbes, s.q.board.count(s.req)/int(max(1, s.q.slots.Load())))
}

// probeEvery is how often this value asks a run unasked: so often that all of its
// slots together ask each run every ProbeEvery.
func (s *slot) probeEvery() time.Duration {
	runs := s.q.board.count(s.req)
	every := s.q.cfg.ProbeEvery
	if slots := int(s.q.slots.Load()); runs > slots {
		every = max(every*time.Duration(slots)/time.Duration(runs), every/100)
	}
	return every
}

// nextLook is when an idle slot looks again unasked, well before ProbeEvery is over: a lease
// that ran out is told by nobody, and somebody has to find it within that time. Or earlier,
// when a run that is full or over its rate is worth another look.
func (s *slot) nextLook() time.Duration {
	every := s.probeEvery()
	look := every/2 + rand.N(every*3/10)
	if due := s.q.board.nextDue(s.req); !due.IsZero() {
		look = min(look, max(0, time.Until(due)))
	}
	return look
}

// ask pulls one job of a run and leases it.
func (s *slot) ask(ctx context.Context, r openRun) (l *lease, err error) {
	board := s.q.board
	served, more := false, false
	defer func() { board.settle(r.ID, served, more) }()
	if r.Limits.MaxStartsPerSecond > 0 {
		right, wait, err := s.q.starts.take(ctx, r.Run)
		if err != nil || right == nil {
			more = true
			board.hold(r.ID, wait)
			return nil, err
		}
		defer func() {
			if l == nil {
				s.q.starts.giveBack(context.WithoutCancel(ctx), right)
			}
		}()
	}
	d, a, err := s.q.pull(ctx, r)
	if err != nil {
		more = true
		return nil, err
	}
	switch a {
	case empty:
		return nil, nil
	case full:
		more = true
		board.hold(r.ID, fullFor)
		return nil, nil
	case missing:
		more = true
		if err := s.q.restoreConsumer(ctx, r.ID); err != nil {
			return nil, err
		}
		board.hold(r.ID, rewatchAfter)
		return nil, nil
	}
	more = d.pending > 0
	// From here on a lease may be ours: ctx no longer counts.
	l, err = s.q.claim(context.WithoutCancel(ctx), r, d, s.req)
	if l != nil && l.waits(context.WithoutCancel(ctx)) {
		l = nil
	}
	served = l != nil
	if err == nil && l == nil {
		more = true // there may be others behind the one that is somebody else's
	}
	return l, err
}
