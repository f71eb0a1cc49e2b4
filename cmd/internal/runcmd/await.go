// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"
	"fmt"
	"time"
)

// lookInterval is how often the queue is asked whether anything is left, in case that
// the worker's events don't tell: a job may have been buried, or done by a worker of
// another process.
const lookInterval = 500 * time.Millisecond

// await returns when no job of the runs is live any more.
func (s *session) await(ctx context.Context) error {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	look := true
	for {
		if look {
			live, err := s.live(ctx)
			if err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return err
			}
			if live == 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			look = true
		case <-s.tracker.Changed():
			// The events say that all is done: no need to wait for the tick.
			c := s.tracker.Snapshot().Sum()
			look = c.Done >= c.Total
		}
	}
}

// live is how many jobs are left in the queue.
func (s *session) live(ctx context.Context) (int, error) {
	n := 0
	for _, r := range s.runs {
		st, err := s.queue.Stats(ctx, r.RunID)
		if err != nil {
			return 0, fmt.Errorf("run %s: %w", r.RunID, err)
		}
		n += st.Live()
	}
	return n, nil
}
