// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
)

// FindUnfinished returns the newest run of the store that has the same plan and not all
// commits of its trials' current epochs, or nil; those of except, and those that were
// cancelled or stopped, are passed over. It is
// what lets a command that was interrupted go on when it is simply given again.
func FindUnfinished(ctx context.Context, store bundle.Store, digest string, except []string) (*manifest.RunRecord, error) {
	same, err := sameDigest(ctx, store, digest, except)
	if err != nil {
		return nil, err
	}
	for _, c := range same {
		done, now, err := dispatch.LookAt(ctx, store, c.id)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", c.id, err)
		}
		if done >= c.trials || now.Ended != nil {
			continue
		}
		rec, err := dispatch.LoadRun(ctx, store, c.id)
		if err != nil {
			return nil, err
		}
		return &rec, nil
	}
	return nil, nil
}

// candidate is what is remembered of a run while others are looked at.
type candidate struct {
	id      string
	trials  int
	created time.Time
}

// sameDigest returns the runs with a digest, the newest first.
func sameDigest(ctx context.Context, store bundle.Store, digest string, except []string) ([]candidate, error) {
	var same []candidate
	for id, err := range bundle.ListRuns(ctx, store) {
		if err != nil {
			return nil, err
		}
		if slices.Contains(except, id) {
			continue
		}
		rec, err := dispatch.LoadRun(ctx, store, id)
		if nothingToContinue(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if rec.Plan.Digest == digest {
			same = append(same, candidate{id, rec.Plan.Trials, rec.CreatedAt})
		}
	}
	slices.SortFunc(same, func(a, b candidate) int {
		return cmp.Or(b.created.Compare(a.created), cmp.Compare(b.id, a.id))
	})
	return same, nil
}

// nothingToContinue tells a directory without run.yaml, or with one that can't be
// understood, from trouble with the store.
func nothingToContinue(err error) bool {
	_, unknown := errors.AsType[*dispatch.UnknownRunError](err)
	_, bad := errors.AsType[*dispatch.BadRunError](err)
	return unknown || bad
}
