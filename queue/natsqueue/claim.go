// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// claim takes the lease for a delivery, or hands the delivery back and returns
// nil.
func (q *Queue) claim(ctx context.Context, r openRun, d *delivery, req queue.Request) (*lease, error) {
	if d.seq <= q.board.purged(r.ID) {
		if there, err := q.exists(ctx, d); err != nil || !there {
			return nil, err
		}
	}
	mine := holding{
		Nonce: req.Nonce, Worker: req.Worker, Value: q.id,
		TTLMillis: q.cfg.LeaseTTL.Milliseconds(), Seq: d.seq,
	}
	key := leaseKey(r.ID, d.Trial)
	var before entry // whose place we take
	birth := ""
	for range swapTries {
		if now := q.book.current(); now != birth {
			birth, before = now, entry{}
			// In a new bucket nothing says who holds what until the owners came back.
			if wait := q.book.unsettled(); wait > 0 {
				q.postpone(r, d, wait)
				return nil, nil
			}
		}
		revision, err := q.book.write(ctx, birth, key, mine, before.revision)
		if err == nil {
			q.tellLost(before, key)
			return q.newLease(r, d, mine, birth, revision), nil
		}
		if errors.Is(err, errReborn) {
			continue
		}
		if !isConflict(err) {
			return nil, err
		}
		before, err = q.book.read(ctx, birth, key)
		if errors.Is(err, errNoEntry) {
			before = entry{}
			continue
		}
		if err != nil {
			return nil, err
		}
		if before.Nonce == mine.Nonce { // our write, whose answer was lost
			return q.newLease(r, d, mine, birth, before.revision), nil
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
