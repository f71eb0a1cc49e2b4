// SPDX-License-Identifier: Apache-2.0

package aggregator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/report"
	"github.com/tidemill/tidemill/manifest"
)

// walker goes through a plan and finds out what became of each trial.
type walker struct {
	store    bundle.Store
	keys     bundle.Keys
	log      zerolog.Logger
	parallel int
	epochs   map[string]int
}

// stretch is how many trials are read for each parallel reader before they are handed
// on: it bounds memory, and is long enough that one slow answer costs little.
const stretch = 16

// walk gives every trial to add, in plan order and from this goroutine.
func (w *walker) walk(ctx context.Context, plan manifest.Plan, add func(report.Trial) error) error {
	trials := 0
	found := make([]report.Trial, w.parallel*stretch)
	for part := range plan.Parts {
		rows, err := bundle.ReadPlanPart(ctx, w.store, w.keys, part)
		if err != nil {
			return err
		}
		trials += len(rows)
		for len(rows) > 0 {
			n := min(len(rows), len(found))
			if err := w.find(ctx, rows[:n], found[:n]); err != nil {
				return err
			}
			for _, t := range found[:n] {
				if err := add(t); err != nil {
					return err
				}
			}
			rows = rows[n:]
		}
	}
	if trials != plan.Trials {
		return fmt.Errorf("the plan has %d trials in %d parts, but %s says %d", trials, plan.Parts, w.keys.RunFile(), plan.Trials)
	}
	return nil
}

// find reads the commits of rows, several at a time.
func (w *walker) find(ctx context.Context, rows []bundle.PlanRow, found []report.Trial) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(w.parallel)
	for i, row := range rows {
		group.Go(func() error {
			t, err := w.trial(ctx, row)
			found[i] = t
			return err
		})
	}
	return group.Wait()
}

// trial finds the commit that is shown for a row: that of the highest epoch that has
// one.
func (w *walker) trial(ctx context.Context, row bundle.PlanRow) (report.Trial, error) {
	current := max(1, w.epochs[row.TrialID])
	t := report.Trial{Row: row, Epoch: current}
	for epoch := current; epoch >= 1 && t.Commit == nil; epoch-- {
		c, err := bundle.FindCommit(ctx, w.store, w.keys, row.TrialID, epoch)
		if err == nil && c != nil && (c.TaskID != row.TaskID || c.TrialIndex != row.TrialIndex) {
			err = fmt.Errorf("%s is of task %.80q, trial %d", w.keys.Commit(row.TrialID, epoch), c.TaskID, c.TrialIndex)
		}
		switch {
		case err == nil:
			t.Commit = c
		case noAnswer(ctx, err):
			return t, err
		default:
			w.log.Error().Err(err).Str("run_id", w.keys.Run).Str("trial_id", row.TrialID).Str("task_id", row.TaskID).
				Int("trial_index", row.TrialIndex).Int("epoch", epoch).Msg("commit can't be read, trial counts as missing")
			t.Problem = err.Error()
			return t, nil
		}
	}
	return t, nil
}

// noAnswer tells a store that gave no answer from one that gave a bad one.
func noAnswer(ctx context.Context, err error) bool {
	var path *fs.PathError
	var network net.Error
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, bundle.ErrUnavailable) || errors.Is(err, bundle.ErrDenied) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &path) || errors.As(err, &network)
}
