// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"errors"
	"fmt"

	"github.com/tidemill/tidemill/manifest"
)

// ErrUnsupported: the run file asks for something that this version does not enforce.
var ErrUnsupported = errors.New("not supported by this version")

// unsupported refuses what a run file may say and nothing here would obey. A limit that
// is accepted and ignored costs somebody money.
func unsupported(run *manifest.Run) error {
	for _, f := range []struct {
		key string
		set bool
	}{
		{"limits.max_budget_usd", run.Limits.MaxBudgetUSD > 0},
		{"limits.deadline", run.Limits.Deadline > 0},
		{"storage.artifacts", run.Storage.Artifacts != nil},
	} {
		if f.set {
			return fmt.Errorf("%s: %s: %w; leave it out", run.File, f.key, ErrUnsupported)
		}
	}
	return nil
}
