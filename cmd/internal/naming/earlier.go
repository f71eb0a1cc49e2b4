// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
)

// Earlier is a run that was left unfinished, with how far it came.
type Earlier struct {
	Record manifest.RunRecord
	Done   int
}

// maxEarlier is how many runs of a name are looked at: what is older is forgotten, and a
// store has many.
const maxEarlier = 10

// Earlier returns the unfinished runs of a name that this command doesn't go on with, the
// newest first. Whoever changes a run file between two halves of a run may not know that
// the first half stays open.
func (n *Namer) Earlier(ctx context.Context, name string) ([]Earlier, error) {
	var same []manifest.RunRecord
	for id, err := range bundle.ListRuns(ctx, n.Store) {
		if err != nil {
			return nil, err
		}
		if slices.Contains(n.used, id) {
			continue
		}
		rec, err := dispatch.LoadRun(ctx, n.Store, id)
		if noRun(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if rec.Run.Name == name {
			same = append(same, rec)
		}
	}
	slices.SortFunc(same, func(a, b manifest.RunRecord) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.RunID, b.RunID))
	})
	var open []Earlier
	for _, rec := range same[:min(len(same), maxEarlier)] {
		done, now, err := dispatch.LookAt(ctx, n.Store, rec.RunID)
		if err != nil {
			return nil, err
		}
		if done < rec.Plan.Trials && now.Ended == nil {
			open = append(open, Earlier{rec, done})
		}
	}
	return open, nil
}

// noRun tells a directory without run.yaml, or with one that can't be understood.
func noRun(err error) bool {
	_, unknown := errors.AsType[*dispatch.UnknownRunError](err)
	_, bad := errors.AsType[*dispatch.BadRunError](err)
	return unknown || bad
}
