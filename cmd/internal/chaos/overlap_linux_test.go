// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"testing"
	"time"
)

// What two outages share, and what lies outside of the time asked for, doesn't count.
func TestOverlapCountsEachMomentOnce(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	windows := []window{{at(30), at(99)}, {at(5), at(12)}, {at(14), at(20)}, {at(15), at(17)}, {at(16), at(22)}, {at(1), at(3)}}
	if got, want := overlap(windows, at(10), at(40)), 20*time.Second; got != want { // 10-12, 14-22, 30-40
		t.Errorf("overlap %v, want %v", got, want)
	}
}
