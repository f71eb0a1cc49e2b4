// SPDX-License-Identifier: Apache-2.0

package aggregator

import (
	"cmp"
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/report"
	"github.com/tidemill/tidemill/manifest"
)

// Config says what to aggregate.
type Config struct {
	Store bundle.Store
	RunID string
	Log   zerolog.Logger
	// Parallel is how many commits are read at a time. Defaults to 32.
	Parallel int
	// GeneratedBy is the version that the report names. Defaults to that which
	// submitted the run.
	GeneratedBy string
	// TempDir takes the reports while they grow. Defaults to the system's.
	TempDir string
	// Meta tells what a pack says of a trial's task, for slices. May be nil.
	Meta func(bundle.PlanRow) report.Meta
}

// Run writes the reports of a run and returns its aggregate. A run that isn't there is
// a [dispatch.UnknownRunError].
func Run(ctx context.Context, c Config) (*report.Aggregate, error) {
	agg, err := run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("aggregate run %s: %w", c.RunID, err)
	}
	return agg, nil
}

func run(ctx context.Context, c Config) (*report.Aggregate, error) {
	rec, err := dispatch.LoadRun(ctx, c.Store, c.RunID)
	if err != nil {
		return nil, err
	}
	keys := bundle.Keys{Run: c.RunID}
	decided, err := readControl(ctx, c.Store, keys)
	if err != nil {
		return nil, err
	}
	files, err := newSpool(c.TempDir)
	if err != nil {
		return nil, err
	}
	defer files.remove()
	acc, err := report.NewAccumulator(header(c, rec, decided), files)
	if err != nil {
		return nil, err
	}
	captures, err := runCaptures(ctx, c.Store, keys, c.Log)
	if err != nil {
		return nil, err
	}
	for _, capture := range captures {
		if err := acc.AddRunCapture(capture); err != nil {
			return nil, err
		}
	}
	w := walker{store: c.Store, keys: keys, log: c.Log, parallel: cmp.Or(max(0, c.Parallel), 32), epochs: decided.epochs}
	if err := w.walk(ctx, rec.Plan, acc.Add); err != nil {
		return nil, err
	}
	agg, err := acc.Finish()
	if err != nil {
		return nil, err
	}
	if err := files.upload(ctx, c.Store, keys); err != nil {
		return nil, err
	}
	return agg, nil
}

func header(c Config, rec manifest.RunRecord, decided decisions) report.Header {
	return report.Header{
		RunID:       c.RunID,
		Group:       rec.Group,
		Matrix:      rec.Run.Values(),
		Name:        rec.Run.Name,
		Agent:       rec.Run.Agent.Name,
		PlanDigest:  rec.Plan.Digest,
		Repeats:     rec.Run.Repeats,
		GeneratedBy: cmp.Or(c.GeneratedBy, rec.Producer),
		CreatedAt:   rec.CreatedAt,
		Ended:       decided.ended,
		Meta:        c.Meta,
	}
}
