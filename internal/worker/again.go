// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

// hurryBudget is how long a call is repeated once the worker has to stop.
const hurryBudget = 20 * time.Second

var errBudget = errors.New("the budget for trying the store again is used up")

// again repeats what failed for want of the store, within a budget.
func (w *Worker) again(ctx context.Context, budget time.Duration, do func(context.Context) error) error {
	return w.repeat(ctx, budget, 0, do)
}

// refusedShare is the part of a budget in which what the store refuses to take is offered
// again: somebody may have taken a permission away for a moment, and what is to be stored
// may have cost money.
const refusedShare = 10

// insist is again for what is to be stored.
func (w *Worker) insist(ctx context.Context, budget time.Duration, do func(context.Context) error) error {
	return w.repeat(ctx, budget, budget/refusedShare, do)
}

func (w *Worker) repeat(ctx context.Context, budget, refused time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, budget, errBudget)
	defer cancel()
	start := time.Now()
	var pause backoff
	for {
		err := do(ctx)
		spent := time.Since(start)
		away := errors.Is(err, bundle.ErrUnavailable)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case !away && (noRoom(err) || errors.Is(err, bundle.ErrNoSpace)):
			return err // what makes room is elsewhere
		case !away && spent >= refused:
			return err
		case w.hardCtx.Err() != nil && spent > hurryBudget:
			return err
		}
		w.Log.Warn().Err(err).Msg("store is unavailable or refuses; trying again")
		if pause.wait(ctx); ctx.Err() != nil {
			return err
		}
	}
}

// backoff waits a little longer each time, up to 5 seconds.
type backoff struct{ d time.Duration }

func (b *backoff) wait(ctx context.Context) {
	b.d = min(max(2*b.d, 50*time.Millisecond), 5*time.Second)
	timer := time.NewTimer(b.d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
