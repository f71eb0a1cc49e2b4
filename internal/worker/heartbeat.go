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

// startBeat renews the lease from now on, in a goroutine that endBeat waits for.
func (wk *work) startBeat() {
	stop, done := make(chan struct{}), make(chan struct{})
	log := wk.log // the attempt's is another one, later
	go func() {
		defer close(done)
		wk.beat(stop, log)
	}()
	wk.stopBeat = func() {
		close(stop)
		<-done
	}
}

// endBeat returns when the lease is renewed no more: nothing may be said beside the
// answer that ends it. It can be repeated.
func (wk *work) endBeat() { wk.beatOnce.Do(wk.stopBeat) }

// beatBound is how long a heartbeat may not come by, at least.
const beatBound = time.Minute

// beat renews the lease until stop is closed, and cancels the trial when the lease is
// lost. Lost and unreachable are not the same: while nobody knows, the trial goes on for
// the grace.
func (wk *work) beat(stop <-chan struct{}, log zerolog.Logger) {
	interval := max(wk.lease.TTL()/3, time.Millisecond)
	timer := time.NewTimer(interval)
	defer timer.Stop()
	confirmed := time.Now()
	pulse := wk.w.dog.Watch("heartbeat of trial "+wk.lease.Job().Trial, max(2*wk.lease.TTL(), beatBound))
	defer pulse.End()
	for {
		pulse.Touch()
		select {
		case <-stop:
			return
		case <-wk.lease.Revoked():
			log.Info().Msg("lease revoked; the trial is stopped")
			wk.cancel(wk.revoked())
			return
		case <-timer.C:
		}
		next := interval
		switch err := wk.extend(interval); {
		case err == nil:
			confirmed = time.Now()
		case errors.Is(err, queue.ErrLost):
			log.Warn().Err(err).Msg("lease lost; the trial is stopped")
			wk.cancel(fmt.Errorf("%w: %w", trial.ErrLeaseLost, err))
			return
		default:
			away := time.Since(confirmed)
			log.Warn().Err(err).Dur("for", away).Msg("lease could not be renewed")
			if away > max(wk.w.OutageGrace, 0) {
				wk.cancel(fmt.Errorf("%w: the queue was unreachable for %s", trial.ErrLeaseLost, away.Round(time.Second)))
				return
			}
			next = interval / 5 // soon, or it runs out while the queue is back
		}
		timer.Reset(next)
	}
}

func (wk *work) extend(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(wk.ctx), timeout)
	defer cancel()
	return wk.lease.Extend(ctx)
}
