// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tidemill/tidemill/runtime"
)

// Provider is where scripted sandboxes live. Runtimes that share one are workers on
// one provider. The zero value is ready for use.
type Provider struct {
	// Capacity is how many sandboxes fit at once. Default: no limit.
	Capacity int

	mu     sync.Mutex
	last   int
	boxes  map[string]*box // by handle id
	counts map[string]int  // executions of "first" instructions
}

// reserve makes a box that has the name, or says who has it.
func (p *Provider) reserve(b *box) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.boxes {
		if other.name == b.name {
			return &runtime.ConflictError{Name: b.name, Owner: other.handle(), Labels: other.spec.Labels}
		}
	}
	if p.Capacity > 0 && len(p.boxes) >= p.Capacity {
		return fmt.Errorf("all of %d sandboxes are in use: %w", p.Capacity, runtime.ErrCapacity)
	}
	if p.boxes == nil {
		p.boxes = map[string]*box{}
	}
	p.last++
	b.id = fmt.Sprintf("box-%d", p.last) // never used again, so a handle needs no proof
	p.boxes[b.id] = b
	return nil
}

func (p *Provider) find(id string) *box {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.boxes[id]
}

func (p *Provider) drop(b *box) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.boxes, b.id)
}

func (p *Provider) all() []*box {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.boxes), func(a, b *box) int { return a.created.Compare(b.created) })
}

// count notes one more execution and returns how many that makes.
func (p *Provider) count(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts == nil {
		p.counts = map[string]int{}
	}
	p.counts[key]++
	return p.counts[key]
}

// Left says in words what there is: sandboxes and their processes.
func (p *Provider) Left() []string {
	var left []string
	for _, b := range p.all() {
		left = append(left, fmt.Sprintf("sandbox %s (%s) with %d processes", b.name, b.id, b.processCount()))
	}
	return left
}
