// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"context"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
)

// otherGraders counts trials by the sha256 of the pack whose verdict they show, or will
// show, because of a regrade, where it isn't the pack of the run. Who retries such a run
// has graders that differ.
func (p *Producer) otherGraders(ctx context.Context, rec manifest.RunRecord) (map[string]int, error) {
	keys := bundle.Keys{Run: rec.RunID}
	records, err := bundle.ReadControl(ctx, p.Store, keys)
	if err != nil {
		return nil, err
	}
	// The newest decision about a trial says what it shows.
	opened := map[string]*bundle.Control{}
	other := false
	for i := len(records) - 1; i >= 0; i-- {
		c := &records[i]
		for trial := range c.Epochs {
			if opened[trial] == nil {
				opened[trial] = c
				other = other || c.Kind == bundle.ControlRegrade && !dispatch.SamePacks(*c, nil)
			}
		}
	}
	if !other {
		return nil, nil
	}
	counts := map[string]int{}
	for part := range rec.Plan.Parts {
		rows, err := bundle.ReadPlanPart(ctx, p.Store, keys, part)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			c := opened[row.TrialID]
			if c == nil || c.Kind != bundle.ControlRegrade {
				continue
			}
			if sum := dispatch.GradingPack(*c, row.Pack); sum != row.Pack {
				counts[sum]++
			}
		}
	}
	return counts, nil
}
