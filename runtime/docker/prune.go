// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

var _ runtime.Pruner = (*Runtime)(nil)

// Prune removes images that were built here, beyond the budget, and what dead owners left
// in the runtime's directory. Images are everybody's who uses the engine: those in use, or
// used a short while ago, stay. An engine that can't be reached has none.
func (r *Runtime) Prune(ctx context.Context, opts runtime.PruneOptions) ([]runtime.Pruned, error) {
	found := r.clear(time.Now(), opts.DryRun)
	budget := opts.ImageBudget
	if budget == 0 {
		budget = r.images.Budget()
	}
	if budget == 0 {
		return found, nil
	}
	budget = max(0, budget)
	unused, err := slow(ctx, r.engine, "count the images", func(ctx context.Context) ([]runtime.Pruned, error) {
		var list []runtime.Pruned
		unused, err := r.images.Shrink(ctx, budget, opts.DryRun)
		for _, u := range unused {
			list = append(list, runtime.Pruned{
				Kind: "image", ID: u.ID, Bytes: u.Size, Used: u.Used, Why: fmt.Sprintf("nothing uses it, beyond the budget of %d bytes", budget),
			})
		}
		return list, err
	})
	if unreachable := (*unreachableError)(nil); errors.As(err, &unreachable) && r.neverUsed() {
		err = nil
	}
	return append(found, unused...), err
}
