// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"context"
	"errors"
	"slices"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
)

// unfinishedGroup returns the newest group whose runs have the plans of the drafts, each
// at its place, with at least one that isn't finished; "" when there is none. A matrix
// goes on as a whole: what is finished stays finished, and what was never submitted gets
// the place that it would have had.
func (n *Namer) unfinishedGroup(ctx context.Context, drafts []*producer.Draft) (string, error) {
	groups := map[string]map[string]manifest.RunRecord{} // by group, then by run id
	for id, err := range bundle.ListRuns(ctx, n.Store) {
		if err != nil {
			return "", err
		}
		rec, err := dispatch.LoadRun(ctx, n.Store, id)
		if _, unknown := errors.AsType[*dispatch.UnknownRunError](err); unknown {
			continue // a directory without run.yaml claims nothing
		}
		if err != nil {
			return "", err
		}
		if rec.Group == "" || slices.Contains(n.used, id) {
			continue
		}
		if groups[rec.Group] == nil {
			groups[rec.Group] = map[string]manifest.RunRecord{}
		}
		groups[rec.Group][id] = rec
	}
	best, newest := "", manifest.RunRecord{}
	for group, runs := range groups {
		if !fits(group, runs, drafts) {
			continue
		}
		rec, err := n.firstUnfinished(ctx, runs)
		if err != nil {
			return "", err
		}
		if rec != nil && (best == "" || rec.CreatedAt.After(newest.CreatedAt)) {
			best, newest = group, *rec
		}
	}
	return best, nil
}

// fits reports whether each run of a group has its place among the drafts.
func fits(group string, runs map[string]manifest.RunRecord, drafts []*producer.Draft) bool {
	placed := 0
	for i, d := range drafts {
		rec, ok := runs[member(group, i)]
		if ok && rec.Plan.Digest != d.Plan.Digest {
			return false
		}
		if ok {
			placed++
		}
	}
	return placed == len(runs)
}

func (n *Namer) firstUnfinished(ctx context.Context, runs map[string]manifest.RunRecord) (*manifest.RunRecord, error) {
	for id, rec := range runs {
		done, err := dispatch.CountDone(ctx, n.Store, id)
		if err != nil {
			return nil, err
		}
		if done < rec.Plan.Trials {
			return &rec, nil
		}
	}
	return nil, nil
}
