// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Hold is something that speaks against taking more work now.
type Hold struct {
	// What it is, one word: disk, memory, alone.
	What  string    `json:"what"`
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
}

// gate is open while nothing holds it. What runs goes on behind a shut one.
type gate struct {
	mu      sync.Mutex
	holds   []Hold          // by what
	open    context.Context // ends when it is shut
	shut    context.CancelFunc
	changed chan struct{} // closed at each change, and replaced
}

func newGate() *gate {
	g := &gate{changed: make(chan struct{})}
	g.open, g.shut = context.WithCancel(context.Background())
	return g
}

// hold shuts the gate until what is freed, or says why anew.
func (g *gate) hold(what, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.IndexFunc(g.holds, func(h Hold) bool { return h.What == what }); i >= 0 {
		g.holds[i].Why = why
		return
	}
	g.holds = append(g.holds, Hold{what, why, time.Now().UTC()})
	slices.SortFunc(g.holds, func(a, b Hold) int { return cmp.Compare(a.What, b.What) })
	g.shut()
	g.tell()
}

// free takes back a hold. The gate opens with the last one.
func (g *gate) free(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	had := len(g.holds)
	g.holds = slices.DeleteFunc(g.holds, func(h Hold) bool { return h.What == what })
	if had == 0 || len(g.holds) > 0 {
		return
	}
	g.open, g.shut = context.WithCancel(context.Background())
	g.tell()
}

func (g *gate) tell() {
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *gate) list() []Hold {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.holds)
}

// look reports whether the gate is open; the channel closes when that changes.
func (g *gate) look() (open bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.holds) == 0, g.changed
}

// pass waits until the gate is open. It returns false when ctx ended first.
func (g *gate) pass(ctx context.Context) bool {
	for {
		open, changed := g.look()
		if open {
			return ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// while returns a context that ends when the gate is shut, or after a time.
func (g *gate) while(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	inner, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(open, cancel)
	return inner, func() { stop(); cancel() }
}

// close ends what the gate keeps.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut()
}
