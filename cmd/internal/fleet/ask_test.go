// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/cmd/internal/fleet"
	"github.com/tidemill/tidemill/queue"
)

// A worker that lost a trial may go on telling of it for a while: who began last has it.
func TestPlaces(t *testing.T) {
	one, two, other := queue.Running{TrialID: "t", Attempt: 1}, queue.Running{TrialID: "t", Attempt: 2}, queue.Running{TrialID: "u", Attempt: 1}
	for _, workers := range [][]queue.Presence{
		{{Worker: "w1", Running: []queue.Running{one, other}}, {Worker: "w2", Running: []queue.Running{two}}},
		{{Worker: "w2", Running: []queue.Running{two}}, {Worker: "w1", Running: []queue.Running{other, one}}},
	} {
		want := map[string]fleet.Place{"t": {"w2", two}, "u": {"w1", other}}
		if diff := cmp.Diff(want, fleet.Places(workers)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
