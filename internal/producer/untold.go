// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"fmt"

	"github.com/tidemill/tidemill/bundle"
)

// UntoldError says that an order is decided, or was before, and that the queue could not
// be told.
type UntoldError struct {
	Answer *Answer
	Err    error // of the queue, or of reading what it has to be told
}

func (e *UntoldError) Error() string {
	if e.Answer.Rev == 0 {
		return fmt.Sprintf("run %s: the queue could not be told: %v", e.Answer.Run, e.Err)
	}
	return fmt.Sprintf("run %s: decision %d is in the store, but the queue could not be told: %v", e.Answer.Run, e.Answer.Rev, e.Err)
}

// Unwrap returns the cause.
func (e *UntoldError) Unwrap() error { return e.Err }

// unpublished reports whether an order puts trials into the queue. A governor holds runs
// and lets them go as the store says, but it puts in only what it has seen there.
func unpublished(o Order, before, now bundle.ControlState) bool {
	switch o.Kind {
	case bundle.ControlResume, bundle.ControlRetry:
		return true
	case bundle.ControlLimits: // another deadline takes up what was purged
		return before.Ended != nil && now.Ended == nil
	}
	return false
}
