// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"sync"
)

// company is who has a sandbox on this worker now. A trial that may have killed a worker
// runs alone, so that what happens to the worker then is its doing, and that of nobody
// beside it.
type company struct {
	gate    *gate // is held while somebody is alone, or waits for that
	mu      sync.Mutex
	running int
	alone   bool          // somebody is alone, or waits for the others to go
	changed chan struct{} // closed at each change, and replaced
}

func newCompany(g *gate) *company { return &company{gate: g, changed: make(chan struct{})} }

// enter joins the others. It returns false while somebody is alone, or is about to be.
func (c *company) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alone {
		return false
	}
	c.running++
	return true
}

// enterAlone waits until the others have gone; nobody enters meanwhile, and the gate is held
// and says why. It returns false while somebody else is alone, or is about to be, and when
// ctx ended first.
func (c *company) enterAlone(ctx context.Context, why string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alone {
		return false
	}
	c.alone = true
	c.gate.hold(holdAlone, why)
	for c.running > 0 && ctx.Err() == nil {
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		c.mu.Lock()
	}
	if ctx.Err() != nil {
		c.over()
		return false
	}
	c.running++
	return true
}

// leave ends what enter or enterAlone began.
func (c *company) leave(alone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if alone {
		c.over()
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *company) over() {
	c.gate.free(holdAlone) // first, or it would take away the next one's hold
	c.alone = false
}
