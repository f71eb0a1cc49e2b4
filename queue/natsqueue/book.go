// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

// holding is the entry of the lease bucket that says who speaks for a trial.
type holding struct {
	Nonce  string `json:"nonce"`
	Worker string `json:"worker"`
	// Value is the process's value of the queue, which hears of a take-over.
	Value string `json:"value"`
	// TTLMillis counts from the server's time of the entry. It is the holder's: who
	// comes later may be configured otherwise.
	TTLMillis int64 `json:"ttl_ms"`
	// Seq is the number of the job in TRIALS.
	Seq uint64 `json:"seq"`
	// Ending says that the holder has begun to end the lease. A newer job of the
	// trial can only be there because it was put in on purpose, and need not wait.
	Ending bool `json:"ending,omitempty"`
}

// entry is a holding as it was read.
type entry struct {
	holding
	revision uint64
	written  time.Time // server's time
}

func (e entry) ttl() time.Duration { return time.Duration(e.TTLMillis) * time.Millisecond }

// book is the lease bucket.
type book struct {
	q  *Queue
	mu sync.Mutex
	// What is known of the stream below: its first possible number, and its birth
	// by the server's clock.
	first uint64
	born  time.Time
}

func leaseSubject(key string) string { return "$KV." + leasesBucket + "." + key }

// write swaps an entry; revision 0 means that there is none. An entry that was
// written although the answer got lost is found by its nonce later.
func (b *book) write(ctx context.Context, key string, h holding, revision uint64) (uint64, error) {
	value, err := json.Marshal(h)
	if err != nil {
		return 0, err
	}
	return b.q.swap(ctx, leaseSubject(key), value, revision)
}

// errNoEntry: nobody holds a lease of the trial.
var errNoEntry = errors.New("no lease")

func (b *book) read(ctx context.Context, key string) (e entry, err error) {
	err = b.q.call(ctx, "read lease "+key, func(ctx context.Context) error {
		m, err := b.q.lastMessage(ctx, leasesStream, leaseSubject(key))
		if errors.Is(err, jetstream.ErrMsgNotFound) || isMissing(err) {
			return errNoEntry
		}
		if err != nil {
			return err
		}
		e.revision, e.written = m.Sequence, m.Time
		if err := json.Unmarshal(m.Data, &e.holding); err != nil {
			return fmt.Errorf("entry of another kind: %w", err)
		}
		return nil
	})
	return e, err
}

// remove ends an entry if it still has this revision, and leaves no marker: with
// a million trials those would stay for ever. It may fail; the entry's time runs
// out by itself.
func (b *book) remove(ctx context.Context, key string, revision uint64) {
	_ = b.q.call(ctx, "remove lease "+key, func(ctx context.Context) error {
		return b.q.deleteMessage(ctx, leasesStream, revision)
	})
}

// refresh asks the server for the bucket's birth and the time, and makes the
// bucket if it is gone.
func (b *book) refresh(ctx context.Context) error {
	return b.q.repaired(ctx, func() error {
		return b.q.call(ctx, "read the state of the leases", func(ctx context.Context) error {
			info, err := b.q.streamInfo(ctx, leasesStream)
			if err != nil {
				return err
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.first, b.born = info.Config.FirstSeq, info.Created
			return nil
		})
	})
}

// reborn reports whether the bucket is younger than one of its revisions, so
// that a missing entry says nothing.
func (b *book) reborn(ctx context.Context, revision uint64) (bool, error) {
	if err := b.refresh(ctx); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first > revision, nil
}

// unsettled is for how long nobody may lease what has no entry, because a living
// owner may not have come back to a new bucket yet.
func (b *book) unsettled() time.Duration {
	if b.q.cfg.LeaseSettle < 0 {
		return 0
	}
	b.mu.Lock()
	born := b.born
	b.mu.Unlock()
	return max(0, b.q.cfg.LeaseSettle-b.q.clock.now().Sub(born))
}

// takeable returns after which time somebody else may take the entry over, 0 for
// now. The server's time is asked for anew: this is what a lease's life hangs on.
func (b *book) takeable(ctx context.Context, e entry, d *delivery) (time.Duration, error) {
	if e.Ending && e.Seq != d.seq {
		return 0, nil
	}
	if err := b.refresh(ctx); err != nil {
		return 0, err
	}
	if rest := e.written.Add(e.ttl()).Sub(b.q.clock.now()); rest > 0 {
		return rest, nil
	}
	return max(0, b.q.cfg.LeaseSettle-b.q.clock.sinceConnect()), nil
}

// claim takes the lease for a delivery, or hands the delivery back and returns
// nil.
func (q *Queue) claim(ctx context.Context, r openRun, d *delivery, req queue.Request) (*lease, error) {
	if d.seq <= q.board.purged(r.ID) {
		if there, err := q.exists(ctx, d); err != nil || !there {
			return nil, err
		}
	}
	if wait := q.book.unsettled(); wait > 0 {
		q.postpone(r, d, wait)
		return nil, nil
	}
	mine := holding{
		Nonce: req.Nonce, Worker: req.Worker, Value: q.id,
		TTLMillis: q.cfg.LeaseTTL.Milliseconds(), Seq: d.seq,
	}
	key := leaseKey(r.ID, d.Trial)
	var before entry // whose place we take
	for range swapTries {
		revision, err := q.writeLease(ctx, key, mine, before.revision)
		if err == nil {
			q.tellLost(before, key)
			return q.newLease(r, d, mine, revision), nil
		}
		if !isConflict(err) {
			return nil, err
		}
		before, err = q.book.read(ctx, key)
		if errors.Is(err, errNoEntry) {
			before = entry{}
			continue
		}
		if err != nil {
			return nil, err
		}
		if before.Nonce == mine.Nonce { // our write, whose answer was lost
			return q.newLease(r, d, mine, before.revision), nil
		}
		wait, err := q.book.takeable(ctx, before, d)
		if err != nil {
			return nil, err
		}
		if wait > 0 {
			q.postpone(r, d, wait)
			return nil, nil
		}
	}
	q.postpone(r, d, q.cfg.ProbeTimeout)
	return nil, nil
}

// writeLease makes the bucket anew if it is gone.
func (q *Queue) writeLease(ctx context.Context, key string, h holding, revision uint64) (next uint64, err error) {
	next, err = q.book.write(ctx, key, h, revision)
	if err == nil || !errors.Is(err, queue.ErrUnreachable) {
		return next, err
	}
	// Nobody answers for a stream that isn't there either.
	if q.book.refresh(ctx) != nil {
		return 0, err
	}
	return q.book.write(ctx, key, h, revision)
}

// postpone hands a delivery back for some time, half of the ack wait at most,
// since its lease may end early.
func (q *Queue) postpone(r openRun, d *delivery, wait time.Duration) {
	wait = min(wait, q.cfg.LeaseTTL/2) + 5*time.Millisecond
	q.handBack(d, wait)
	q.timers.wakeLater(r.Run, wait+5*time.Millisecond)
}

// tellLost tells the former holder, who may be alive after all.
func (q *Queue) tellLost(before entry, key string) {
	if before.Value != "" {
		_ = q.nc.Publish(lostSubject(before.Value), []byte(key+" "+before.Nonce))
	}
}
