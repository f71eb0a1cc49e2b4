// SPDX-License-Identifier: Apache-2.0

package trials

import (
	"context"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
)

// Filter chooses trials.
type Filter struct {
	// States are those that are wanted; empty means all.
	States []State
	// Tasks are globs over task ids; empty means all.
	Tasks []string
}

func (f Filter) row(r bundle.PlanRow) bool {
	return len(f.Tasks) == 0 || slices.ContainsFunc(f.Tasks, func(g string) bool { return manifest.MatchGlob(g, r.TaskID) })
}

func (f Filter) trial(t Trial) bool {
	return len(f.States) == 0 || slices.Contains(f.States, t.State())
}

const (
	readers = 32
	// stretch is how many trials are in memory at once: enough that one slow answer of the
	// store costs little.
	stretch = readers * 16
)

// Walk yields the trials of a run that a filter lets through, in the plan's order. It
// holds a part of the plan and a stretch of trials in memory, however long the run is. An
// error ends it.
func Walk(ctx context.Context, s bundle.Store, rec manifest.RunRecord, f Filter) iter.Seq2[Trial, error] {
	return func(yield func(Trial, error) bool) {
		epochs, err := epochsOf(ctx, s, rec.RunID)
		if err != nil {
			yield(Trial{}, err)
			return
		}
		for part := range rec.Plan.Parts {
			rows, err := bundle.ReadPlanPart(ctx, s, bundle.Keys{Run: rec.RunID}, part)
			if err != nil {
				yield(Trial{}, err)
				return
			}
			rows = slices.DeleteFunc(rows, func(r bundle.PlanRow) bool { return !f.row(r) })
			for some := range slices.Chunk(rows, stretch) {
				found, err := fillAll(ctx, s, rec.RunID, some, epochs)
				if err != nil {
					yield(Trial{}, err)
					return
				}
				for _, t := range found {
					if f.trial(t) && !yield(t, nil) {
						return
					}
				}
			}
		}
	}
}

// fillAll finds out about rows, several at a time.
func fillAll(ctx context.Context, s bundle.Store, run string, rows []bundle.PlanRow, epochs bundle.Epochs) ([]Trial, error) {
	found := make([]Trial, len(rows))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, row := range rows {
		group.Go(func() (err error) {
			found[i], err = fill(ctx, s, run, row, epochs.Of(row.TrialID))
			return err
		})
	}
	return found, group.Wait()
}

func epochsOf(ctx context.Context, s bundle.Store, run string) (bundle.Epochs, error) {
	records, err := bundle.ReadControl(ctx, s, bundle.Keys{Run: run})
	if err != nil {
		return nil, err
	}
	return bundle.CurrentEpochs(records)
}
