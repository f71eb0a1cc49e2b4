// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/trial"
)

// whyTimeout bounds the look for the reason of a revoked lease. The trial is stopped then
// in any case.
const whyTimeout = 2 * time.Second

// revoked is the cause with which a trial is stopped whose lease is over. Only the run's
// decisions know whether a person or its deadline ended it.
func (wk *work) revoked() error {
	ctx, cancel := context.WithTimeout(wk.ctx, whyTimeout)
	defer cancel()
	now, err := dispatch.Control(ctx, wk.w.Store, wk.keys.Run)
	if err == nil && now.Ended.Reason() == bundle.ReasonDeadline {
		return fmt.Errorf("%w: %w", errRevoked, trial.ErrDeadline)
	}
	return errRevoked
}
