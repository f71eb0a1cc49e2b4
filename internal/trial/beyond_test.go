// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Work that goes on after a stop has its limit, and less once the attempt was stopped.
func TestBeyond(t *testing.T) {
	for name, c := range map[string]struct {
		stopAfter, want time.Duration
	}{
		"stopped before":    {0, 30 * time.Second},
		"stopped meanwhile": {time.Minute, 90 * time.Second},
		"never stopped":     {-1, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempt, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				if c.stopAfter >= 0 {
					time.AfterFunc(c.stopAfter, func() { stop(ErrCancelled) })
					if c.stopAfter == 0 {
						<-attempt.Done()
					}
				}
				began := time.Now()
				ctx, cancel := beyond(attempt, 5*time.Minute, 30*time.Second)
				defer cancel()
				<-ctx.Done()
				if took := time.Since(began); took != c.want || !errors.Is(context.Cause(ctx), errSlow) {
					t.Errorf("ended after %s with %v, want %s", took, context.Cause(ctx), c.want)
				}
			})
		})
	}
	ctx, cancel := beyond(t.Context(), time.Minute, time.Minute)
	if ctx.Err() != nil {
		t.Error("ended at once")
	}
	cancel()
}
