// SPDX-License-Identifier: Apache-2.0

package memqueue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// lease is one delivery. It is current as long as its entry names it as the
// holder.
type lease struct {
	queue   *Queue
	run     *run
	entry   *entry
	job     queue.Job
	worker  string
	fence   queue.Fence
	once    sync.Once
	revoked chan struct{}
}

func (l *lease) Job() queue.Job {
	j := l.job
	j.Body = slices.Clone(j.Body)
	return j
}

func (l *lease) Fence() queue.Fence       { return l.fence }
func (l *lease) TTL() time.Duration       { return l.queue.broker.cfg.LeaseTTL }
func (l *lease) Revoked() <-chan struct{} { return l.revoked }
func (l *lease) revoke()                  { l.once.Do(func() { close(l.revoked) }) }

// Abandon does nothing: silence is what a crash sounds like.
func (l *lease) Abandon() {}

// own checks that the lease is current and calls do with the broker's lock held.
// It is current until somebody else has the job, even when its time is up.
func (l *lease) own(ctx context.Context, do func(b *Broker, now time.Time)) error {
	if err := l.queue.enter(ctx); err != nil {
		return err
	}
	b := l.queue.broker
	defer b.mu.Unlock()
	if l.run.live[l.job.Trial] != l.entry || l.entry.holder != l {
		return fmt.Errorf("lease of %s, fence %d: %w", l.job.ID, l.fence, queue.ErrLost)
	}
	do(b, time.Now())
	return nil
}

func (l *lease) Extend(ctx context.Context) error {
	return l.own(ctx, func(b *Broker, now time.Time) {
		l.run.take(l.entry)
		l.entry.holder = l
		l.entry.due = now.Add(b.cfg.LeaseTTL)
		l.run.put(l.entry, leased, b.turn)
	})
}

// end removes the job from its run.
func (l *lease) end() {
	l.run.take(l.entry)
	l.entry.holder = nil
	delete(l.run.live, l.job.Trial)
}

func (l *lease) Done(ctx context.Context) error {
	return l.own(ctx, func(b *Broker, _ time.Time) {
		l.end()
		b.wake() // a place in MaxInFlight is free
	})
}

func (l *lease) Retry(ctx context.Context, after time.Duration, body []byte) error {
	next := l.job
	next.Release++
	if body != nil {
		next.Body = slices.Clone(body)
	}
	if err := next.Validate(); err != nil {
		return fmt.Errorf("%w: retry: %w", queue.ErrInvalid, err)
	}
	return l.own(ctx, func(b *Broker, now time.Time) {
		l.end()
		b.remember(l.run.ID, next.ID, now)
		e := &entry{Job: next, due: now.Add(after)}
		l.run.live[next.Trial] = e
		l.run.put(e, delayed, b.turn)
		b.wake()
	})
}

func (l *lease) HandBack(ctx context.Context) error {
	return l.own(ctx, func(b *Broker, _ time.Time) {
		l.run.take(l.entry)
		l.run.put(l.entry, pending, b.turn) // its order is the one it came with
		b.wake()
	})
}

func (l *lease) Bury(ctx context.Context, reason string) error {
	return l.own(ctx, func(b *Broker, now time.Time) {
		l.end()
		letter := queue.DeadLetter{Job: l.Job(), Reason: reason, At: now}
		b.dead[l.job.Run] = append(b.dead[l.job.Run], letter)
		b.wake()
	})
}
