// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"context"
	"sync"
)

// Control lets a test meet the scripts: wait until one reached a point ("block NAME"
// or "signal NAME"), and let those go on that block there. A sandbox is named by its
// resource name; "" stands for any. The zero value is ready for use.
type Control struct {
	mu     sync.Mutex
	points map[pointKey]*point
}

type pointKey struct{ sandbox, name string }

// point is a place in scripts. Both channels close at most once until Rearm.
type point struct {
	reached, released chan struct{}
	count             int
}

func (c *Control) point(sandbox, name string) *point {
	if c.points == nil {
		c.points = map[pointKey]*point{}
	}
	k := pointKey{sandbox, name}
	if c.points[k] == nil {
		c.points[k] = &point{reached: make(chan struct{}), released: make(chan struct{})}
	}
	return c.points[k]
}

// Wait returns when a script of the sandbox has reached the point.
func (c *Control) Wait(ctx context.Context, sandbox, name string) error {
	c.mu.Lock()
	reached := c.point(sandbox, name).reached
	c.mu.Unlock()
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Reached says how often the point was reached.
func (c *Control) Reached(sandbox, name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.point(sandbox, name).count
}

// Release lets all go on that block at the point, now and later. Released before it
// is reached, a point doesn't block.
func (c *Control) Release(sandbox, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	closeOnce(c.point(sandbox, name).released)
}

// Rearm makes the point as new for whoever comes later (the next attempt has the same
// sandbox name). Those that block there go on blocking, and can't be released any
// more but by their context.
func (c *Control) Rearm(sandbox, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.points, pointKey{sandbox, name})
}

// reach notes that a script is at a point, and returns its own and everybody's gate.
func (c *Control) reach(sandbox, name string) (own, all <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mine, any := c.point(sandbox, name), c.point("", name)
	for _, p := range []*point{mine, any} {
		p.count++
		closeOnce(p.reached)
	}
	return mine.released, any.released
}

func (c *Control) block(ctx context.Context, sandbox, name string) error {
	own, all := c.reach(sandbox, name)
	select {
	case <-own:
		return nil
	case <-all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// closeOnce closes a channel that is closed only under the same lock.
func closeOnce(ch chan struct{}) {
	select {
	case <-ch:
	default:
		close(ch)
	}
}
