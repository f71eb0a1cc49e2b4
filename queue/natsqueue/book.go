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
	// Seq is the number of the job in TRIALS, 0 when it was handed back.
	Seq uint64 `json:"seq"`
	// Ending says that the holder ends the lease, or has ended it. A newer job of
	// the trial can only be there because it was put in on purpose, and need not
	// wait. Nor need one that was handed back.
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
	// What is known of the stream below: the birth that its subjects have, and when
	// that was by the server's clock.
	birth string
	born  time.Time
}

// errReborn: the bucket is another one than it was. Nothing was written, and what was
// known of its entries says nothing of the new one's.
var errReborn = errors.New("the lease bucket was made anew")

// write swaps an entry; revision 0 means that there is none. An entry that was
// written although the answer got lost is found by its nonce later. The revision is of
// the bucket with this birth: another one gets nothing.
func (b *book) write(ctx context.Context, birth, key string, h holding, revision uint64) (next uint64, err error) {
	value, err := json.Marshal(h)
	if err != nil {
		return 0, err
	}
	var life time.Duration
	if h.Ending {
		life = endedFor
	}
	next, err = b.q.swapFor(ctx, leaseSubject(birth, key), value, revision, life)
	if !absent(err) {
		return next, err
	}
	// Nobody takes it: the bucket is gone, or was made anew, or has no leader just now.
	if b.refresh(ctx) != nil {
		return 0, err
	}
	if b.current() != birth {
		return 0, errReborn
	}
	return 0, err
}

// current is the birth of the bucket, as far as this value knows.
func (b *book) current() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.birth
}

// endedFor is how long the server keeps the entry of a lease that ended, and
// with it the right to repeat a call whose answer was lost. Then it goes by
// itself, without a marker: with a million trials those would stay for ever, and
// a delete of our own would cost one more fsync for each.
const endedFor = 10 * time.Minute

// errNoEntry: nobody holds a lease of the trial.
var errNoEntry = errors.New("no lease")

func (b *book) read(ctx context.Context, birth, key string) (e entry, err error) {
	err = b.q.call(ctx, "read lease "+key, func(ctx context.Context) error {
		m, err := b.q.lastMessage(ctx, leasesStream, leaseSubject(birth, key))
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

// refresh asks the server for the bucket's birth and the time, and makes the
// bucket if it is gone.
func (b *book) refresh(ctx context.Context) error {
	return b.q.repaired(ctx, func() error {
		return b.q.call(ctx, "read the state of the leases", func(ctx context.Context) error {
			info, err := b.q.streamInfo(ctx, leasesStream)
			if err != nil {
				return err
			}
			b.noteBirth(&info)
			return nil
		})
	})
}

func (b *book) noteBirth(info *jetstream.StreamInfo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.birth, b.born = birthOf(info.Config), info.Created
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
	return max(0, b.q.cfg.LeaseSettle-b.q.clock.atLeast().Sub(born))
}

var _ queue.Settling = (*Queue)(nil)

// Settles implements [queue.Settling].
func (q *Queue) Settles() time.Duration { return q.book.unsettled() }

// takeable returns after which time somebody else may take the entry over, 0 for
// now. The server's time is asked for anew: this is what a lease's life hangs on.
func (b *book) takeable(ctx context.Context, e entry, d *delivery) (time.Duration, error) {
	if e.Ending && e.Seq != d.seq {
		return 0, nil
	}
	if err := b.refresh(ctx); err != nil {
		return 0, err
	}
	if rest := e.written.Add(e.ttl()).Sub(b.q.clock.atLeast()); rest > 0 {
		return rest, nil
	}
	return max(0, b.q.cfg.LeaseSettle-b.q.clock.sinceConnect()), nil
}
