// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestPlan(t *testing.T) {
	for _, s := range []scale{{20, 3, time.Second}, {200, 3, 3 * time.Second}, {2000, 4, 3 * time.Second}} {
		for seed := range uint64(20) {
			plan := draw(seed, s, allKinds)
			if again := draw(seed, s, allKinds); !reflect.DeepEqual(plan, again) {
				t.Fatalf("seed %d gave another plan the second time", seed)
			}
			if seed > 0 && reflect.DeepEqual(plan, draw(0, s, allKinds)) {
				t.Errorf("seeds 0 and %d gave the same plan of %d faults", seed, len(plan))
			}
			count := map[kind]int{}
			last := 0
			for _, f := range plan {
				count[f.Kind]++
				if f.At < last || f.At >= s.trials*6/7 {
					t.Errorf("seed %d: %s after one at %d, of %d trials", seed, f, last, s.trials)
				}
				if f.Worker < 0 || f.Worker >= s.workers {
					t.Errorf("seed %d: %s of worker %d", seed, f, f.Worker)
				}
				if longer := []kind{freezeWorker, cutWorker, muteWorker}; slices.Contains(longer, f.Kind) && f.Hold <= s.lease {
					t.Errorf("seed %d: %s for %v, the lease is %v", seed, f, f.Hold, s.lease)
				}
				last = f.At
			}
			for _, k := range allKinds {
				if count[k] == 0 {
					t.Errorf("seed %d with %d trials: no %s", seed, s.trials, k)
				}
			}
		}
	}
}

func TestParseKinds(t *testing.T) {
	if got, err := parseKinds("all"); err != nil || len(got) != len(allKinds) {
		t.Errorf("all: %v, %v", got, err)
	}
	if got, err := parseKinds("s3-503,worker-kill"); err != nil || !slices.Equal(got, []kind{store503, killWorker}) {
		t.Errorf("two: %v, %v", got, err)
	}
	for _, bad := range []string{"", "kill", "s3-503,"} {
		if got, err := parseKinds(bad); err == nil {
			t.Errorf("%q: %v, want an error", bad, got)
		}
	}
}
