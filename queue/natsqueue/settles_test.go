// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"testing"
	"time"

	"github.com/tidemill/tidemill/queue/natsqueue"
)

// In a new lease bucket nothing is given out until its living holders could have come
// back, and the queue says for how long.
func TestSettles(t *testing.T) {
	s := startServer(t)
	if left := open(t, s).Settles(); left != 0 {
		t.Errorf("settles for %s, and was told not to", left)
	}
	q := open(t, s, func(c *natsqueue.Config) { c.LeaseSettle = time.Hour })
	if left := q.Settles(); left <= 50*time.Minute || left > time.Hour {
		t.Errorf("settles for %s, want about an hour", left)
	}
}
