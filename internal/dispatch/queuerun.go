// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// Needs are what a run asks of a worker, itself or by its tasks.
func Needs(rec manifest.RunRecord) []string {
	needs := []string{rec.Run.Runtime.Type}
	if rec.Run.Runtime.Resources.GPUs > 0 || rec.Asks.GPUs > 0 {
		needs = append(needs, "gpu")
	}
	return needs
}

// QueueRun is the run as the queue sees it before anything was decided about it; see [Steer].
func QueueRun(rec manifest.RunRecord) (queue.Run, error) {
	class, err := queue.NewClass(Needs(rec)...)
	if err != nil {
		return queue.Run{}, fmt.Errorf("run %s: %w", rec.RunID, err)
	}
	r := queue.Run{
		ID: rec.RunID, Pool: rec.Run.Pool, Class: class, Priority: queue.Priority(rec.Run.Priority),
		Limits: queue.Limits{
			MaxInFlight:        rec.Run.Limits.MaxInFlight,
			MaxStartsPerSecond: rec.Run.Limits.MaxStartsPerSecond,
		},
	}.WithDefaults()
	return r, r.Validate()
}
