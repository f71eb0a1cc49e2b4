// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/queue"
)

// beat renews a lease until stop is closed, and cancels the trial when the lease is
// lost. Lost and unreachable are not the same: while nobody knows, the trial goes on for
// the grace.
func (w *Worker) beat(lease queue.Lease, log zerolog.Logger, cancel context.CancelCauseFunc, stop <-chan struct{}) {
	interval := lease.TTL() / 3
	timer := time.NewTimer(interval)
	defer timer.Stop()
	confirmed := time.Now()
	for {
		select {
		case <-stop:
			return
		case <-lease.Revoked():
			log.Info().Msg("lease revoked")
			cancel(trial.ErrCancelled)
			return
		case <-timer.C:
		}
		ctx, done := context.WithTimeout(context.WithoutCancel(w.hardCtx), interval)
		err := lease.Extend(ctx)
		done()
		switch {
		case err == nil:
			confirmed = time.Now()
		case errors.Is(err, queue.ErrLost):
			log.Warn().Err(err).Msg("lease lost; the trial is stopped")
			cancel(fmt.Errorf("%w: %w", trial.ErrLeaseLost, err))
			return
		default:
			away := time.Since(confirmed)
			log.Warn().Err(err).Dur("for", away).Msg("lease could not be renewed")
			if away > max(w.OutageGrace, 0) {
				cancel(fmt.Errorf("%w: the queue was unreachable for %s", trial.ErrLeaseLost, away.Round(time.Second)))
				return
			}
		}
		timer.Reset(interval)
	}
}
