// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"testing"
	"testing/synctest"
	"time"
)

// Whatever the round trip and the local clock, the server's time is between the
// two answers.
func TestClockBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead = 3 * time.Hour // the server's clock, of ours
		var c clock
		asked := time.Now()
		time.Sleep(30 * time.Millisecond)
		reading := time.Now().Add(ahead)
		time.Sleep(70 * time.Millisecond)
		c.set(reading, asked)
		time.Sleep(time.Minute)
		server := time.Now().Add(ahead)
		if got := server.Sub(c.atLeast()); got != 70*time.Millisecond {
			t.Errorf("at least is %v behind, want the way back: 70ms", got)
		}
		if got := c.atMost().Sub(server); got != 30*time.Millisecond {
			t.Errorf("at most is %v ahead, want the way there: 30ms", got)
		}
	})
}
