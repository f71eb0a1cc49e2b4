// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"sync"
	"time"
)

// clock tells the server's time, which is the only one that all workers share.
// Between two readings it runs on the local monotonic clock, so that a wall clock
// that jumps changes nothing.
type clock struct {
	mu     sync.Mutex
	server time.Time // the last reading
	read   time.Time // when it was taken, local and monotonic
	since  time.Time // of the last (re)connect, local and monotonic
}

func (c *clock) set(server time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.read = server, time.Now()
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Add(time.Since(c.read))
}

func (c *clock) connected(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = at
}

// sinceConnect is how long this value has been connected without a break.
func (c *clock) sinceConnect() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.since)
}
