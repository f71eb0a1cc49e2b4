// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math"
	"regexp"
	"time"
)

// Priority weighs the turns that runs get at free slots. It never lets one run
// starve another.
type Priority string

// The priorities and, as their weights, how many turns each gets relative to the
// others.
const (
	Low    Priority = "low"
	Normal Priority = "normal"
	High   Priority = "high"
)

// Weight returns 1 for low, 4 for normal (and for the zero value), 16 for high.
func (p Priority) Weight() int {
	switch p {
	case Low:
		return 1
	case High:
		return 16
	default:
		return 4
	}
}

// Limits bound what a run may take of the whole fleet. Zero means no limit.
type Limits struct {
	// MaxInFlight is how many of the run's jobs may be leased at once.
	MaxInFlight int `json:"max_in_flight,omitempty"`
	// MaxStartsPerSecond is how many of the run's jobs may be leased per second.
	MaxStartsPerSecond float64 `json:"max_starts_per_second,omitempty"`
}

// Run is what a queue knows of a run.
type Run struct {
	// ID is the run id: [a-z0-9][a-z0-9-]{0,62}.
	ID string `json:"run_id"`
	// Pool is the named group of workers that serves it: [a-z0-9][a-z0-9-]{0,62}.
	// Defaults to "default".
	Pool string `json:"pool"`
	// Class is what the run needs of a worker.
	Class Class `json:"class"`
	// Priority defaults to normal.
	Priority Priority `json:"priority,omitempty"`
	// Limits default to none.
	Limits Limits `json:"limits"`
	// Paused runs keep what is in flight and hand out nothing new.
	Paused bool `json:"paused,omitempty"`
}

// DefaultPool is the pool of a run that names none.
const DefaultPool = "default"

var nameRE = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// WithDefaults returns a completed copy.
func (r Run) WithDefaults() Run {
	if r.Pool == "" {
		r.Pool = DefaultPool
	}
	if r.Priority == "" {
		r.Priority = Normal
	}
	return r
}

// Validate reports the first field that is wrong. Call it on a completed run.
func (r Run) Validate() error {
	if !nameRE.MatchString(r.ID) {
		return fmt.Errorf("run id %q: want [a-z0-9][a-z0-9-]{0,62}", r.ID)
	}
	if !nameRE.MatchString(r.Pool) {
		return fmt.Errorf("run %s: pool %q: want [a-z0-9][a-z0-9-]{0,62}", r.ID, r.Pool)
	}
	if err := r.Class.Validate(); err != nil {
		return fmt.Errorf("run %s: %w", r.ID, err)
	}
	switch r.Priority {
	case Low, Normal, High:
	default:
		return fmt.Errorf("run %s: priority %q: want low, normal or high", r.ID, r.Priority)
	}
	rate := r.Limits.MaxStartsPerSecond
	if r.Limits.MaxInFlight < 0 || rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) {
		return fmt.Errorf("run %s: limits are 0 (none) or more", r.ID)
	}
	return nil
}

// longestStep is between two starts where hardly any is wanted: 30 years.
const longestStep = 1e9 * time.Second

// Step is the time between two starts, 0 where their rate isn't limited.
func (l Limits) Step() time.Duration {
	if l.MaxStartsPerSecond <= 0 {
		return 0
	}
	return time.Duration(min(float64(time.Second)/l.MaxStartsPerSecond, float64(longestStep)))
}

// Stats counts a run's live jobs. The three are disjoint.
type Stats struct {
	// Pending jobs wait for a free slot.
	Pending int `json:"pending"`
	// Delayed jobs wait for their time (after a Retry).
	Delayed int `json:"delayed"`
	// InFlight jobs are delivered and not yet ended.
	InFlight int `json:"in_flight"`
	// Dead jobs were buried. They are not live.
	Dead int `json:"dead"`
}

// Live is the number of jobs that still have to end.
func (s Stats) Live() int { return s.Pending + s.Delayed + s.InFlight }

// DeadLetter is a job that was buried, with the reason.
type DeadLetter struct {
	Job    Job       `json:"job"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}
