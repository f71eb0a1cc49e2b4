// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
)

// FindUnfinished returns the newest run of the store that has the same plan and
// not all of its commits, or nil; those of except are passed over. It is what lets a command that was
// interrupted go on when it is simply given again.
func FindUnfinished(ctx context.Context, store bundle.Store, digest string, except []string) (*manifest.RunRecord, error) {
	var newest *manifest.RunRecord
	for id, err := range bundle.ListRuns(ctx, store) {
		if err != nil {
			return nil, err
		}
		if slices.Contains(except, id) {
			continue
		}
		rec, err := dispatch.LoadRun(ctx, store, id)
		if _, unknown := errors.AsType[*dispatch.UnknownRunError](err); unknown {
			continue // a directory without run.yaml claims nothing
		}
		if err != nil {
			return nil, err
		}
		if rec.Plan.Digest != digest || (newest != nil && !rec.CreatedAt.After(newest.CreatedAt)) {
			continue
		}
		done, err := countCommits(ctx, store, id)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", id, err)
		}
		if done < rec.Plan.Trials {
			newest = &rec
		}
	}
	return newest, nil
}

// countCommits counts the trials that have a commit.
func countCommits(ctx context.Context, store bundle.Store, run string) (int, error) {
	n := 0
	for info, err := range store.List(ctx, bundle.Keys{Run: run}.Commits()) {
		if err != nil {
			return 0, err
		}
		if _, epoch, ok := bundle.ParseCommitKey(info.Key); ok && epoch == 1 {
			n++
		}
	}
	return n, nil
}
