// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"cmp"
	"testing"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// Harness is one fresh broker and what the suite may expect of it.
type Harness struct {
	// Queue is the value under test. The harness closes it.
	Queue queue.Queue
	// Open gives another value on the same broker, as another process would have
	// one. The harness closes it, and allows that the suite did so before.
	Open func(t *testing.T) queue.Queue
	// TTL is how long a lease lives without Extend, the same for all values.
	// Short, but long enough that a few calls fit into a third of it.
	TTL time.Duration
	// Restart ends the broker and starts it again with what it had stored; nil if
	// the broker keeps nothing, and the suite then ends where it would restart.
	// The values that are open stay open and find the new one.
	Restart func(t *testing.T)
	// Patience bounds each wait for something that must come. Defaults to 30 s.
	Patience time.Duration
	// Quiet is how long the suite watches for something that must not come.
	// Defaults to 250 ms.
	Quiet time.Duration
	// Early is how much before its time a delayed job may come, where the broker's
	// clock is not the caller's. Defaults to none.
	Early time.Duration
	// TurnLag is how many jobs of a large run may be handed out before the first
	// one of a small run that came later, at equal priority. Defaults to 3.
	TurnLag int
	// StartBurst is how many jobs may start at once before MaxStartsPerSecond
	// bites. Defaults to 1.
	StartBurst int
}

func (h *Harness) withDefaults() *Harness {
	h.Patience = cmp.Or(h.Patience, 30*time.Second)
	h.Quiet = cmp.Or(h.Quiet, 250*time.Millisecond)
	h.TurnLag = cmp.Or(h.TurnLag, 3)
	h.StartBurst = cmp.Or(h.StartBurst, 1)
	return h
}
