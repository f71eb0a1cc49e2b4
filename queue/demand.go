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

// Demand is what the runs of one pool and class ask for. It is what scales a fleet.
type Demand struct {
	Pool  string `json:"pool"`
	Class Class  `json:"class"`
	// Slots is how many the workers that serve them could keep busy now.
	Slots int `json:"slots"`
	// Jobs are what there is, also of runs that are paused or at their caps.
	Jobs
}

// Jobs counts a run's jobs as far as they matter for its demand. The three are disjoint.
type Jobs struct {
	// Waiting jobs wait for a free slot.
	Waiting int `json:"waiting"`
	// InFlight jobs are delivered and not yet ended.
	InFlight int `json:"in_flight"`
	// DueSoon jobs are delayed, for [DueSoon] at most.
	DueSoon int `json:"due_soon"`
}

// Demands adds up what runs ask for.
type Demands map[served]Demand

// served is what one worker has to have to serve a run.
type served struct {
	pool  string
	class Class
}

// Add counts a run's jobs, as slots up to its cap. A run that is paused asks for nothing,
// and is in the list all the same.
func (d Demands) Add(r Run, jobs Jobs) {
	slots := jobs.Waiting + jobs.InFlight + jobs.DueSoon
	if r.Limits.MaxInFlight > 0 {
		slots = min(slots, r.Limits.MaxInFlight)
	}
	if r.Paused {
		slots = 0
	}
	sum := d[served{r.Pool, r.Class}]
	sum.Pool, sum.Class = r.Pool, r.Class
	sum.Slots += slots
	sum.Waiting += jobs.Waiting
	sum.InFlight += jobs.InFlight
	sum.DueSoon += jobs.DueSoon
	d[served{r.Pool, r.Class}] = sum
}

// List returns the sums, sorted by pool and class.
func (d Demands) List() []Demand {
	list := make([]Demand, 0, len(d))
	for _, sum := range d {
		list = append(list, sum)
	}
	slices.SortFunc(list, func(a, b Demand) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Class, b.Class))
	})
	return list
}
