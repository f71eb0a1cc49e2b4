// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Watchdog knows who has to come by. The zero value is ready. Its methods may be called
// from many goroutines.
type Watchdog struct {
	mu     sync.Mutex
	pulses map[*Pulse]bool
}

// Pulse is one who has to come by within a bound. It rests until it is touched first.
type Pulse struct {
	dog   *Watchdog
	name  string
	bound time.Duration
	last  time.Time // zero while it rests
}

// Watch begins to watch somebody. End it.
func (d *Watchdog) Watch(name string, bound time.Duration) *Pulse {
	p := &Pulse{dog: d, name: name, bound: bound}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pulses == nil {
		d.pulses = map[*Pulse]bool{}
	}
	d.pulses[p] = true
	return p
}

// Touch says that it lives and will come by again within the bound.
func (p *Pulse) Touch() { p.set(time.Now()) }

// Rest says that it lives and is busy with something that others watch: it need not come
// by until it is touched again.
func (p *Pulse) Rest() { p.set(time.Time{}) }

func (p *Pulse) set(at time.Time) {
	p.dog.mu.Lock()
	defer p.dog.mu.Unlock()
	p.last = at
}

// End says that it is over. It can be repeated.
func (p *Pulse) End() {
	p.dog.mu.Lock()
	defer p.dog.mu.Unlock()
	delete(p.dog.pulses, p)
}

// Stuck is one who did not come by in time.
type Stuck struct {
	Name  string        `json:"name"`
	For   time.Duration `json:"-"` // since it came by last
	Bound time.Duration `json:"-"`
}

func (s Stuck) String() string {
	return fmt.Sprintf("%s has not come by for %s, want every %s", s.Name, s.For.Round(time.Second), s.Bound)
}

// Stuck returns those who are late, the latest first.
func (d *Watchdog) Stuck() []Stuck {
	d.mu.Lock()
	defer d.mu.Unlock()
	var late []Stuck
	for p := range d.pulses {
		if away := time.Since(p.last); !p.last.IsZero() && away > p.bound {
			late = append(late, Stuck{Name: p.name, For: away, Bound: p.bound})
		}
	}
	slices.SortFunc(late, func(a, b Stuck) int { return cmp.Or(cmp.Compare(b.For, a.For), cmp.Compare(a.Name, b.Name)) })
	return late
}
