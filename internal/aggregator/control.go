// SPDX-License-Identifier: Apache-2.0

package aggregator

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/report"
)

// decisions are what control records decided about a run, as far as a report shows it.
type decisions struct {
	// epochs is the current epoch of each trial that was put back; all others are in
	// their first.
	epochs map[string]int
	// ended is the decision that ended the run, nil while it goes on.
	ended *report.Ended
}

// readControl reads the control records of a run and applies them in order. One that
// can't be read is an error: nobody knows what it decided.
func readControl(ctx context.Context, s bundle.Store, keys bundle.Keys) (decisions, error) {
	var names []string
	for info, err := range s.List(ctx, keys.Control()) {
		if err != nil {
			return decisions{}, fmt.Errorf("list control records: %w", err)
		}
		names = append(names, info.Key)
	}
	slices.Sort(names) // revisions have eight digits
	d := decisions{epochs: map[string]int{}}
	for rev := 1; rev <= len(names); rev++ {
		key := keys.ControlRecord(rev)
		if _, found := slices.BinarySearch(names, key); !found {
			break // what is left are sidecars
		}
		record, err := bundle.ReadRecord[bundle.Control](ctx, s, key)
		if err != nil {
			return decisions{}, fmt.Errorf("control record: %w", err)
		}
		if err := d.apply(record); err != nil {
			return decisions{}, fmt.Errorf("%s: %w", key, err)
		}
	}
	return d, nil
}

// apply takes one record into account. Kinds that a report doesn't show are passed
// over.
func (d *decisions) apply(c bundle.Control) error {
	switch c.Kind {
	case "retry", "regrade":
		return d.putBack(c)
	case "cancel", "stop":
		reason, _ := c.Args["reason"].(string)
		d.ended = &report.Ended{Kind: c.Kind, Rev: c.Rev, At: c.At.UTC(), By: c.By, Reason: reason}
	case "resume":
		d.ended = nil
	}
	return nil
}

// putBack reads {epochs: {trial id: its next epoch}}.
func (d *decisions) putBack(c bundle.Control) error {
	epochs, ok := c.Args["epochs"].(map[string]any)
	if !ok {
		return fmt.Errorf("%s without args.epochs, an object of trial id → epoch", c.Kind)
	}
	for trial, value := range epochs {
		n, ok := value.(float64)
		if !ok || n < 2 || n > 1<<30 || n != float64(int(n)) {
			return fmt.Errorf("args.epochs of trial %.40q: %v, want a whole number from 2", trial, value)
		}
		d.epochs[trial] = max(d.epochs[trial], int(n))
	}
	return nil
}
