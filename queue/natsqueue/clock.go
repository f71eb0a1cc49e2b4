// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"sync"
	"time"
)

// clock tells the server's time, which is the only one that all workers share.
// Between two readings it runs on the local monotonic clock, so that a wall clock
// that jumps changes nothing.
//
// A reading was taken by the server at some moment while we waited for it, so that
// there are two answers, and each caller takes the one that can't hurt it.
type clock struct {
	mu       sync.Mutex
	server   time.Time // the last reading
	asked    time.Time // when it was asked for, local and monotonic
	answered time.Time // when it came, local and monotonic
	since    time.Time // of the last (re)connect, local and monotonic
}

func (c *clock) set(server, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.asked, c.answered = server, asked, time.Now()
}

// atLeast is a time that the server has passed.
func (c *clock) atLeast() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Add(time.Since(c.answered))
}

// atMost is a time that the server has not passed.
func (c *clock) atMost() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Add(time.Since(c.asked))
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
