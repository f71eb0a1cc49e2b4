// SPDX-License-Identifier: Apache-2.0

package memqueue

import (
	"context"
	"fmt"
	"sync"

	"github.com/tidemill/tidemill/queue"
)

var _ queue.Queue = (*Queue)(nil)

// Queue is one process's value of a [Broker].
type Queue struct {
	broker *Broker
	once   sync.Once
	closed chan struct{}
}

// New returns the only value of a broker of its own.
func New(cfg Config) (*Queue, error) {
	b, err := NewBroker(cfg)
	if err != nil {
		return nil, err
	}
	return b.Open(), nil
}

// Close ends this value. The broker, and what others hold, lives on.
func (q *Queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// enter checks that a call may go ahead and takes the broker's lock, which the
// caller gives back.
func (q *Queue) enter(ctx context.Context) error {
	select {
	case <-q.closed:
		return queue.ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	q.broker.mu.Lock()
	return nil
}

// OpenRun implements [queue.Runs].
func (q *Queue) OpenRun(ctx context.Context, r queue.Run) error {
	r = r.WithDefaults()
	if err := r.Validate(); err != nil {
		return fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	if err := q.enter(ctx); err != nil {
		return err
	}
	b := q.broker
	defer b.mu.Unlock()
	old, ok := b.runs[r.ID]
	switch {
	case !ok:
		b.runs[r.ID] = newRun(r, b.turn)
	case old.Pool != r.Pool || old.Class != r.Class:
		return fmt.Errorf("%w: run %s is open in pool %s with class %s, not in pool %s with class %s",
			queue.ErrConflict, r.ID, old.Pool, old.Class, r.Pool, r.Class)
	default:
		old.Run = r
		old.opened++
	}
	b.wake()
	return nil
}

// PauseRun implements [queue.Runs].
func (q *Queue) PauseRun(ctx context.Context, run string) error {
	return q.setPaused(ctx, run, true)
}

// ResumeRun implements [queue.Runs].
func (q *Queue) ResumeRun(ctx context.Context, run string) error {
	return q.setPaused(ctx, run, false)
}

func (q *Queue) setPaused(ctx context.Context, run string, paused bool) error {
	if err := q.enter(ctx); err != nil {
		return err
	}
	defer q.broker.mu.Unlock()
	r, err := q.broker.run(run)
	if err != nil {
		return err
	}
	r.Paused = paused
	q.broker.wake()
	return nil
}

// PurgeRun implements [queue.Runs].
func (q *Queue) PurgeRun(ctx context.Context, run string) (int, error) {
	if err := q.enter(ctx); err != nil {
		return 0, err
	}
	defer q.broker.mu.Unlock()
	r, err := q.broker.run(run)
	if err != nil {
		return 0, err
	}
	return r.purge(), nil
}

// purge drops every live job, and returns how many of them were not in flight.
func (r *run) purge() (waiting int) {
	for _, e := range r.live {
		if e.state != leased {
			waiting++
		}
		if e.holder != nil {
			e.holder.revoke()
		}
	}
	fresh := newRun(r.Run, r.pass)
	fresh.starts, fresh.opened = r.starts, r.opened
	*r = *fresh
	return waiting
}

// CloseRun implements [queue.Runs].
func (q *Queue) CloseRun(ctx context.Context, run string, settled func(ctx context.Context) (bool, error)) (bool, error) {
	opened, live, open, err := q.lookToClose(ctx, run)
	if err != nil || !open || live > 0 {
		return err == nil && !open, err
	}
	if ok, err := settled(ctx); err != nil || !ok {
		return false, err
	}
	if err := q.enter(ctx); err != nil {
		return false, err
	}
	defer q.broker.mu.Unlock()
	r, ok := q.broker.runs[run]
	if !ok || r.opened == opened && len(r.live) == 0 {
		delete(q.broker.runs, run)
		return true, nil
	}
	return false, nil
}

func (q *Queue) lookToClose(ctx context.Context, run string) (opened, live int, open bool, err error) {
	if err := q.enter(ctx); err != nil {
		return 0, 0, false, err
	}
	defer q.broker.mu.Unlock()
	r, ok := q.broker.runs[run]
	if !ok {
		return 0, 0, false, nil
	}
	return r.opened, len(r.live), true, nil
}

// Publish implements [queue.Publisher].
func (q *Queue) Publish(ctx context.Context, run string, jobs []queue.Job) (queue.Published, error) {
	var out queue.Published
	jobs, err := queue.CheckJobs(run, jobs)
	if err != nil {
		return out, err
	}
	if err := q.enter(ctx); err != nil {
		return out, err
	}
	b := q.broker
	defer b.mu.Unlock()
	r, err := b.run(run)
	if err != nil {
		return out, err
	}
	for _, j := range jobs {
		if !b.store(r, j) {
			out.Skipped++
			continue
		}
		out.Stored++
	}
	if out.Stored > 0 {
		b.wake()
	}
	return out, nil
}
