// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// undo removes what was made. When nobody knows whether the engine did what it was asked
// for, it is looked for a while by our nonce; what comes later still is swept, for its
// owner is gone.
func (o *opening) undo(ctx context.Context, sb *Sandbox, cause error) error {
	if sb != nil {
		o.rt.watch.drop(sb)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.rt.cfg.Close, errBudget)
	defer cancel()
	err := o.rt.destroyEstate(ctx, o.box.ID, o.estate.Nonce)
	if stalled := (*stalledError)(nil); err == nil && (errors.As(cause, &stalled) || !isAnswerOrOurs(cause)) {
		for wait := 50 * time.Millisecond; wait < 2*time.Second && err == nil; wait *= 2 {
			if pause(ctx, wait) != nil {
				break
			}
			err = o.rt.destroyEstate(ctx, "", o.estate.Nonce)
		}
	}
	if err == nil && o.net != nil { // it is gone: this gives its addresses back
		err = o.rt.subnets.Remove(ctx, o.net)
	}
	if err != nil {
		o.estate.release() // the record stays, so that a sweep finds what is left
		return fmt.Errorf("clean up after it: %w", err)
	}
	o.estate.forget()
	return nil
}

// isAnswerOrOurs reports whether it is known what the engine did.
func isAnswerOrOurs(err error) bool {
	conflict, refused, unreachable := (*runtime.ConflictError)(nil), (*refusedError)(nil), (*unreachableError)(nil)
	return isAnswer(err) || errors.As(err, &conflict) || errors.As(err, &refused) || errors.As(err, &unreachable)
}

// collect looks at a container that didn't come up.
func (o *opening) collect(ctx context.Context, cause error) {
	if conflict := (*runtime.ConflictError)(nil); o.box.ID == "" || errors.As(cause, &conflict) {
		return
	}
	if state, err := o.rt.engine.state(ctx, o.box.ID); err == nil {
		o.evidence.Services = []runtime.ServiceEvidence{serviceEvidence(state, 0)}
	}
}
