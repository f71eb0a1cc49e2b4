// SPDX-License-Identifier: Apache-2.0

package aggregator

import (
	"cmp"
	"context"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/report"
)

// decisions are what control records decided about a run, as far as a report shows it.
type decisions struct {
	epochs bundle.Epochs
	// ended is the decision that ended the run, nil while it goes on.
	ended *report.Ended
}

// readControl reads the control records of a run and applies them in order.
func readControl(ctx context.Context, s bundle.Store, keys bundle.Keys) (decisions, error) {
	records, err := bundle.ReadControl(ctx, s, keys)
	if err != nil {
		return decisions{}, err
	}
	d := decisions{}
	if d.epochs, err = bundle.CurrentEpochs(records); err != nil {
		return decisions{}, err
	}
	now, err := bundle.FoldControl(records)
	if err != nil {
		return decisions{}, err
	}
	if c := now.Ended; c != nil {
		reason := cmp.Or(c.Reason(), c.Detail())
		d.ended = &report.Ended{Kind: c.Kind, Rev: c.Rev, At: c.At.UTC(), By: c.By, Reason: reason}
	}
	return d, nil
}
