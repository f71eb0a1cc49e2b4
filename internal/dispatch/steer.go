// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"context"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// Control returns what the decisions about a run come to.
func Control(ctx context.Context, store bundle.Store, run string) (bundle.ControlState, error) {
	records, err := bundle.ReadControl(ctx, store, bundle.Keys{Run: run})
	if err != nil {
		return bundle.ControlState{}, err
	}
	return bundle.FoldControl(records)
}

// Steer is the run as the queue should see it after these decisions. The queue holds a run
// that has ended as it holds one that is paused.
func Steer(r queue.Run, s bundle.ControlState) queue.Run {
	r.Priority = cmp.Or(queue.Priority(s.Priority), r.Priority)
	if n := s.Limits.MaxInFlight; n != nil {
		r.Limits.MaxInFlight = *n
	}
	if rate := s.Limits.MaxStartsPerSecond; rate != nil {
		r.Limits.MaxStartsPerSecond = *rate
	}
	r.Paused = s.Held()
	return r
}

// Budget is what the agents of a run may spend in all, in US dollars; 0 is no limit.
func Budget(rec *manifest.RunRecord, s bundle.ControlState) float64 {
	if b := s.Limits.MaxBudgetUSD; b != nil {
		return *b
	}
	return rec.Run.Limits.MaxBudgetUSD
}

// Deadline is when a run is stopped; the zero time is never.
func Deadline(rec *manifest.RunRecord, s bundle.ControlState) time.Time {
	limit := rec.Run.Limits.Deadline.D()
	if changed, ok := s.Limits.Deadline(); ok {
		limit = changed
	}
	if limit <= 0 {
		return time.Time{}
	}
	return rec.CreatedAt.Add(limit)
}
