// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"

	"github.com/tidemill/tidemill/runtime"
)

// asking asks for leases during one survey: once for each trial, and no more once the
// queue didn't answer, so that a queue that is away costs one wait.
type asking struct {
	leases Leases
	known  map[string]holding
	failed error
}

type holding struct{ worker string }

func (a *asking) lease(ctx context.Context, l runtime.Labels) Lease {
	if a.leases == nil {
		return Unknown
	}
	key := l.Run + "/" + l.Trial
	h, ok := a.known[key]
	if !ok {
		if a.failed != nil {
			return Unknown
		}
		worker, err := a.leases.Holder(ctx, l.Run, l.Trial)
		if err != nil {
			a.failed = err
			return Unknown
		}
		h = holding{worker}
		a.known[key] = h
	}
	switch h.worker {
	case "":
		return Free
	case l.Worker:
		return Makers
	}
	return Others
}
