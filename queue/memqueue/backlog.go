// SPDX-License-Identifier: Apache-2.0

package memqueue

import (
	"context"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// Backlog implements [queue.Inspector].
func (q *Queue) Backlog(ctx context.Context) ([]queue.Demand, error) {
	if err := q.enter(ctx); err != nil {
		return nil, err
	}
	defer q.broker.mu.Unlock()
	now := time.Now()
	demands := queue.Demands{}
	for _, r := range q.broker.runs {
		r.advance(q.broker, now)
		soon := 0
		for _, e := range r.timed.entries {
			if e.state == delayed && e.due.Before(now.Add(queue.DueSoon)) {
				soon++
			}
		}
		demands.Add(r.Run, queue.Jobs{Waiting: r.pending.Len(), InFlight: r.leased, DueSoon: soon})
	}
	return demands.List(), nil
}
