// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"context"
	"sync"
	"time"
)

// Clock is the time that instructions and timeouts go by.
type Clock interface {
	Now() time.Time
	// After returns a channel that receives once d has passed.
	After(d time.Duration) <-chan time.Time
}

// wallClock is the real one; in a testing/synctest bubble it is the bubble's.
type wallClock struct{}

func (wallClock) Now() time.Time                         { return time.Now() }
func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// sleep waits for d or for ctx.
func sleep(ctx context.Context, c Clock, d time.Duration) error {
	select {
	case <-c.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// withTimeout cancels with cause once d has passed on the clock; d <= 0 never does.
// stop ends the goroutine and waits for it.
func withTimeout(ctx context.Context, c Clock, d time.Duration, cause error) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if d <= 0 {
		return ctx, func() { cancel(nil) }
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-c.After(d):
			cancel(cause)
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(nil); wg.Wait() }
}
