// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemill/tidemill/queue"
)

// Holder implements [queue.Inspector]. While holders may not have come back, because the
// bucket is new or this value has just connected, a missing or old entry says nothing.
func (q *Queue) Holder(ctx context.Context, run, trial string) (string, error) {
	key := leaseKey(run, trial)
	if err := q.book.refresh(ctx); err != nil { // and with it the clock
		return "", err
	}
	if wait := q.book.unsettled(); wait > 0 {
		return "", fmt.Errorf("holder of trial %s: the leases were lost, and holders have %s to come back: %w", trial, wait, queue.ErrUnreachable)
	}
	e, err := q.book.read(ctx, q.book.current(), key)
	if errors.Is(err, errNoEntry) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if e.Ending {
		return "", nil
	}
	// The time is one that the server has passed, so that no lease is said to be over early.
	if e.written.Add(e.ttl()).After(q.clock.atLeast()) {
		return e.Worker, nil
	}
	if wait := q.cfg.LeaseSettle - q.clock.sinceConnect(); wait > 0 {
		return "", fmt.Errorf("holder of trial %s: the lease ran out, and its holder has %s to come back: %w", trial, wait, queue.ErrUnreachable)
	}
	return "", nil
}
