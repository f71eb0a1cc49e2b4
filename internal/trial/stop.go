// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"time"
)

// Causes with which a worker cancels an attempt's context. Anything else is treated
// as trouble of ours.
var (
	// ErrCancelled: the run was cancelled.
	ErrCancelled = errors.New("run cancelled")
	// ErrDeadline: the run is past its deadline.
	ErrDeadline = errors.New("run past its deadline")
	// ErrBudget: the run is over its budget.
	ErrBudget = errors.New("run over its budget")
	// ErrHandOver: the worker stops and leaves the trial to another.
	ErrHandOver = errors.New("worker is stopping")
	// ErrLeaseLost: somebody else speaks for the trial now.
	ErrLeaseLost = errors.New("lease lost")
)

// stopped returns the ending of a cancelled context, and false when it was not one of
// the causes above.
func stopped(ctx context.Context) (Ending, bool) {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrDeadline):
		return PastDeadline, true
	case errors.Is(cause, ErrBudget):
		return OverBudget, true
	case errors.Is(cause, ErrCancelled), errors.Is(cause, ErrHandOver), errors.Is(cause, ErrLeaseLost),
		errors.Is(cause, context.Canceled):
		return RunCancelled, true
	}
	return "", false
}

var errSlow = errors.New("it took longer than it may")

// beyond returns a context for work that goes on although the attempt was stopped: for
// limit in all, and for no longer than late once the attempt was stopped.
func beyond(attempt context.Context, limit, late time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(attempt))
	timer := time.AfterFunc(limit, func() { cancel(errSlow) })
	unhook := context.AfterFunc(attempt, func() { timer.Reset(late) })
	return ctx, func() {
		unhook()
		timer.Stop()
		cancel(nil)
	}
}
