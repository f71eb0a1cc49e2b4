// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidemill/tidemill/queue"
)

var _ queue.Lease = (*lease)(nil)

// lease is one delivery with the entry that proves it ours.
type lease struct {
	q        *Queue
	run      openRun
	delivery *delivery
	key      string
	fence    queue.Fence

	turn     chan struct{} // one call at a time; holds a token while one is under way
	mine     holding       // guarded by turn
	birth    string        // of the bucket that the entry is in; guarded by turn
	revision uint64        // guarded by turn

	once    sync.Once
	revoked chan struct{} // closed when it is lost
	overs   sync.Once
	over    chan struct{} // closed when it is over, lost or not
}

func (q *Queue) newLease(r openRun, d *delivery, mine holding, birth string, revision uint64) *lease {
	l := &lease{
		q: q, run: r, delivery: d, key: leaseKey(r.ID, d.Trial), fence: queue.Fence(revision),
		turn: make(chan struct{}, 1), mine: mine, birth: birth, revision: revision,
		revoked: make(chan struct{}), over: make(chan struct{}),
	}
	q.held.add(l)
	// The watch may have told of a purge, or of the end of the run, before there
	// was a lease to revoke.
	if d.seq <= q.board.purged(r.ID) {
		l.recheck()
	}
	return l
}

// recheck loses a lease whose job is gone.
func (l *lease) recheck() {
	if there, err := l.q.exists(l.q.life, l.delivery); err == nil && !there {
		l.lose()
	}
}

func (l *lease) Job() queue.Job {
	j := l.delivery.Job
	j.Body = slices.Clone(j.Body)
	return j
}

func (l *lease) Fence() queue.Fence       { return l.fence }
func (l *lease) TTL() time.Duration       { return l.q.cfg.LeaseTTL }
func (l *lease) Revoked() <-chan struct{} { return l.revoked }

// Abandon implements [queue.Lease]. Nothing is sent from here on.
func (l *lease) Abandon() { l.finish() }

func (l *lease) finish() {
	l.overs.Do(func() { close(l.over) })
	l.q.held.drop(l)
}

// lose ends it before it tells: who was told says nothing more to the server.
func (l *lease) lose() {
	l.finish()
	l.once.Do(func() { close(l.revoked) })
}

func (l *lease) lost() error {
	return fmt.Errorf("lease of %s, fence %d: %w", l.delivery.ID, l.fence, queue.ErrLost)
}

// enter waits for the turn of a call and gives it back with leave. It fails if
// the lease is over.
func (l *lease) enter(ctx context.Context) error {
	if l.q.life.Err() != nil {
		return queue.ErrClosed
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-l.over:
		l.leave()
		return l.lost()
	default:
		return nil
	}
}

func (l *lease) leave() { <-l.turn }

// Extend implements [queue.Lease].
func (l *lease) Extend(ctx context.Context) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	defer l.leave()
	if err := l.prove(ctx, false); err != nil {
		return err
	}
	l.q.beat(l.delivery)
	return nil
}

// prove swaps the entry, which is the only proof that it is ours, and renews it.
// Where the bucket was made anew, the entry is made anew. Call it in turn.
func (l *lease) prove(ctx context.Context, ending bool) error {
	l.mine.Ending = ending
	book := &l.q.book
	for range swapTries {
		if now := book.current(); now != l.birth {
			l.birth, l.revision = now, 0
		}
		revision, err := book.write(ctx, l.birth, l.key, l.mine, l.revision)
		if err == nil {
			l.revision = revision
			return nil
		}
		if errors.Is(err, errReborn) {
			continue
		}
		if !isConflict(err) {
			return err
		}
		e, err := book.read(ctx, l.birth, l.key)
		switch {
		case err == nil && e.Nonce == l.mine.Nonce:
			l.revision = e.revision // our own write, whose answer was lost
			continue
		case err != nil && !errors.Is(err, errNoEntry):
			return err
		case err != nil:
			// Gone, because it was purged, or others took it and are done. Or with the
			// bucket, which was whole a moment ago.
			if err := book.refresh(ctx); err != nil {
				return err
			}
			if book.current() != l.birth || l.revision == 0 {
				continue
			}
		}
		l.lose()
		return l.lost()
	}
	return fmt.Errorf("lease of %s: no swap in %d tries: %w", l.delivery.ID, swapTries, queue.ErrUnreachable)
}

// end proves the lease, puts in what has to be there before the job goes, and
// removes the job. The entry stays ours meanwhile: a call that broke off can be
// repeated.
func (l *lease) end(ctx context.Context, first func(ctx context.Context) error) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	defer l.leave()
	if err := l.prove(ctx, true); err != nil {
		return err
	}
	if first != nil {
		if err := first(ctx); err != nil {
			return err
		}
		// However long that took: an ack is nothing to send for a lease that may
		// have run out.
		if err := l.prove(ctx, true); err != nil {
			return err
		}
	}
	if err := l.q.ack(ctx, l.delivery); err != nil {
		return err
	}
	l.finish()
	if l.run.Limits.MaxInFlight > 0 { // there is room now, and nobody else tells
		l.q.board.touch(l.run.ID)
		l.q.wake(l.run.Run)
	}
	return nil
}

// Done implements [queue.Lease].
func (l *lease) Done(ctx context.Context) error { return l.end(ctx, nil) }
