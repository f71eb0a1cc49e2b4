// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"testing"
	"time"
)

// What two outages share, and what lies outside of the time asked for, doesn't count.
func TestOverlapCountsEachMomentOnce(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var windows []window
	for _, w := range [][2]int{{30, 99}, {5, 12}, {14, 20}, {15, 17}, {16, 22}, {1, 3}} {
		windows = append(windows, window{from: at(w[0]), to: at(w[1])})
	}
	if got, want := overlap(windows, at(10), at(40)), 20*time.Second; got != want { // 10-12, 14-22, 30-40
		t.Errorf("overlap %v, want %v", got, want)
	}
}
