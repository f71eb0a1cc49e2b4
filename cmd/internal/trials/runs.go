// SPDX-License-Identifier: Apache-2.0

package trials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
)

// Runs returns the runs of a store that can be read, the newest first.
func Runs(ctx context.Context, s bundle.Store) ([]manifest.RunRecord, error) {
	var runs []manifest.RunRecord
	for id, err := range bundle.ListRuns(ctx, s) {
		if err != nil {
			return nil, err
		}
		rec, err := dispatch.LoadRun(ctx, s, id)
		if noRun(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, rec)
	}
	slices.SortFunc(runs, func(a, b manifest.RunRecord) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.RunID, b.RunID))
	})
	return runs, nil
}

// noRun recognizes a directory without run.yaml, or with one that can't be understood.
func noRun(err error) bool {
	_, unknown := errors.AsType[*dispatch.UnknownRunError](err)
	_, bad := errors.AsType[*dispatch.BadRunError](err)
	return unknown || bad
}

// Newest returns the run that was made last.
func Newest(ctx context.Context, s bundle.Store) (manifest.RunRecord, error) {
	runs, err := Runs(ctx, s)
	if err != nil {
		return manifest.RunRecord{}, err
	}
	if len(runs) == 0 {
		return manifest.RunRecord{}, app.Usage(app.Hint(fmt.Errorf("%s has no runs yet", s.URL()), "make one with tidemill run FILE"))
	}
	return runs[0], nil
}

// Load returns a run by its id.
func Load(ctx context.Context, s bundle.Store, id string) (manifest.RunRecord, error) {
	rec, err := dispatch.LoadRun(ctx, s, id)
	if _, unknown := errors.AsType[*dispatch.UnknownRunError](err); unknown {
		near, lookErr := nearRun(ctx, s, id)
		if lookErr != nil {
			return rec, lookErr
		}
		hint := "tidemill ls lists the runs of a store"
		if near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		err = app.Usage(app.Hint(err, "%s", hint))
	}
	return rec, err
}

// ExistingRun returns a run by its id, nil when there is none.
func ExistingRun(ctx context.Context, s bundle.Store, id string) (*manifest.RunRecord, error) {
	rec, err := dispatch.LoadRun(ctx, s, id)
	if _, unknown := errors.AsType[*dispatch.UnknownRunError](err); unknown {
		return nil, nil
	}
	return &rec, err
}
