// SPDX-License-Identifier: Apache-2.0

package gccmd

import (
	"context"
	"errors"
	"time"

	"github.com/tidemill/tidemill/internal/sweep"
	"github.com/tidemill/tidemill/queue"
)

// A queue lets holders come back for a while after a connection, and says until then that
// it can't tell. A worker asks again at its next sweep; who comes once has to wait.
const (
	settled = 15 * time.Second // longer than that while
	again   = 500 * time.Millisecond
)

// patient asks again until a deadline.
type patient struct {
	sweep.Leases
	until time.Time
}

func (p patient) Holder(ctx context.Context, run, trial string) (string, error) {
	for {
		worker, err := p.Leases.Holder(ctx, run, trial)
		if !errors.Is(err, queue.ErrUnreachable) || time.Now().After(p.until) {
			return worker, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
