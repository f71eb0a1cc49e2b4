// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"slices"
	"time"
)

// DueSoon is how long before its time a delayed job counts as demand: about what it
// takes until a machine more is there.
const DueSoon = time.Minute

// Demand is how many slots the workers of one pool that serve one class could keep busy
// now. It is what scales a fleet.
type Demand struct {
	Pool  string `json:"pool"`
	Class Class  `json:"class"`
	Slots int    `json:"slots"`
}

// Demands adds up what runs ask for.
type Demands map[Demand]int

// Add counts a run's jobs that wait, are in flight, or are due soon, up to its cap. A run
// that is paused asks for nothing, and is in the list all the same.
func (d Demands) Add(r Run, jobs int) {
	if r.Limits.MaxInFlight > 0 {
		jobs = min(jobs, r.Limits.MaxInFlight)
	}
	if r.Paused {
		jobs = 0
	}
	d[Demand{Pool: r.Pool, Class: r.Class}] += jobs
}

// List returns the sums, sorted by pool and class.
func (d Demands) List() []Demand {
	list := make([]Demand, 0, len(d))
	for what, slots := range d {
		what.Slots = slots
		list = append(list, what)
	}
	slices.SortFunc(list, func(a, b Demand) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Class, b.Class))
	})
	return list
}
