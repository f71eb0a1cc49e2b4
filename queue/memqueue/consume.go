// SPDX-License-Identifier: Apache-2.0

package memqueue

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// store puts one job in, unless its id is known or its trial is live. Call it
// with the lock held.
func (b *Broker) store(r *run, j queue.Job) bool {
	if _, live := r.live[j.Trial]; live {
		return false
	}
	if !b.remember(r.ID, j.ID, time.Now()) {
		return false
	}
	j.Body = slices.Clone(j.Body)
	b.order++
	e := &entry{Job: j, order: b.order}
	r.live[j.Trial] = e
	r.put(e, pending, b.turn)
	return true
}

// Lease implements [queue.Consumer].
func (q *Queue) Lease(ctx context.Context, req queue.Request) (queue.Lease, error) {
	req = req.WithDefaults()
	if err := req.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	for {
		if err := q.enter(ctx); err != nil {
			return nil, err
		}
		l, again := q.next(req, time.Now())
		changed := q.broker.changed
		q.broker.mu.Unlock()
		if l != nil {
			return l, nil
		}
		var due <-chan time.Time
		if !again.IsZero() {
			due = time.After(time.Until(again))
		}
		select {
		case <-changed:
		case <-due:
		case <-q.closed:
		case <-ctx.Done():
		}
	}
}

// next leases a job of the run whose turn it is, or says when to look again.
// Call it with the lock held.
func (q *Queue) next(req queue.Request, now time.Time) (_ *lease, again time.Time) {
	b := q.broker
	var turn *run
	for _, r := range b.runs {
		r.advance(b, now)
		if !req.Serves(r.Run) {
			continue
		}
		ok, at := r.ready(now)
		if !at.IsZero() && (again.IsZero() || at.Before(again)) {
			again = at
		}
		if ok && (turn == nil || r.pass < turn.pass || r.pass == turn.pass && r.ID < turn.ID) {
			turn = r
		}
	}
	if turn == nil {
		return nil, again
	}
	b.turn = turn.pass
	turn.pass += 1 / float64(turn.Priority.Weight())
	if step := turn.Limits.Step(); step > 0 {
		turn.starts = now.Add(step)
	}
	e := heap.Pop(&turn.pending).(*entry)
	if e.holder != nil {
		e.holder.revoke() // it is late, and now it is too late
	}
	b.fence++
	l := &lease{queue: q, run: turn, entry: e, job: e.Job, worker: req.Worker, fence: b.fence, revoked: make(chan struct{})}
	e.holder = l
	e.due = now.Add(b.cfg.LeaseTTL)
	turn.put(e, leased, b.turn)
	return l, again
}
