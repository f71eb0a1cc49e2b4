// SPDX-License-Identifier: Apache-2.0

// Package progress follows trials while they run and shows it: a bar on a terminal,
// JSON lines elsewhere, a snapshot for clients.
package progress

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidemill/tidemill/internal/worker"
)

// Counts of a run's trials.
type Counts struct {
	Total    int            `json:"total"`
	Before   int            `json:"before"` // committed before this process began
	Done     int            `json:"done"`   // committed, those before included
	Passed   int            `json:"passed"` // since this process began
	Failed   int            `json:"failed"`
	Unscored map[string]int `json:"unscored"` // by failure class
	Retries  int            `json:"retries"`
}

// Running is an attempt in progress, from its start until its bundle is in the store.
type Running struct {
	Run        string    `json:"run_id"`
	TaskID     string    `json:"task_id"`
	TrialIndex int       `json:"trial_index"`
	TrialID    string    `json:"trial_id"`
	Attempt    int       `json:"attempt"`
	Phase      string    `json:"phase"`
	Since      time.Time `json:"since"`
}

// Snapshot is what a process knows at one time.
type Snapshot struct {
	Since time.Time         `json:"since"`
	Slots int               `json:"slots"`
	Runs  map[string]Counts `json:"runs"`
	// Running are the attempts that hold a slot, the oldest first.
	Running []Running `json:"running"`
	// Uploading are those whose slot is free already.
	Uploading []Running `json:"uploading"`
}

// Tracker counts events. It is safe for concurrent use.
type Tracker struct {
	mu      sync.Mutex
	since   time.Time
	slots   int
	runs    map[string]*Counts
	running map[string]Running
	changed chan struct{}
}

// NewTracker returns a tracker for a worker with so many slots.
func NewTracker(slots int) *Tracker {
	return &Tracker{
		since: time.Now(), slots: slots,
		runs: map[string]*Counts{}, running: map[string]Running{}, changed: make(chan struct{}, 1),
	}
}

// Changed receives after something changed since the last receive.
func (t *Tracker) Changed() <-chan struct{} { return t.changed }

// Plan tells how many trials a run has, and how many of them were done before.
func (t *Tracker) Plan(run string, total, before int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts(run)
	c.Done += before - c.Before
	c.Total, c.Before = total, before
	t.poke()
}

// Reopen tells that trials of a run that were done are to be done once more.
func (t *Tracker) Reopen(run string, trials int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts(run).Done -= trials
	t.poke()
}

// Observe takes an event of the worker.
func (t *Tracker) Observe(e worker.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts(e.Run)
	switch e.Kind {
	case worker.Started:
		t.running[e.TrialID] = Running{
			Run: e.Run, TaskID: e.TaskID, TrialIndex: e.TrialIndex, TrialID: e.TrialID,
			Attempt: e.Attempt, Phase: "start", Since: e.At,
		}
	case worker.Phase:
		if r, ok := t.running[e.TrialID]; ok {
			r.Phase = e.Phase
			t.running[e.TrialID] = r
		}
	case worker.Committed:
		delete(t.running, e.TrialID)
		c.Done++
		switch {
		case !e.Outcome.Scored:
			c.Unscored[string(e.Outcome.FailureClass)]++
		case e.Grade.BinaryPass:
			c.Passed++
		default:
			c.Failed++
		}
	case worker.Retrying:
		delete(t.running, e.TrialID)
		c.Retries++
	case worker.Dropped, worker.Found:
		delete(t.running, e.TrialID)
	}
	t.poke()
}

func (t *Tracker) counts(run string) *Counts {
	c, ok := t.runs[run]
	if !ok {
		c = &Counts{Unscored: map[string]int{}}
		t.runs[run] = c
	}
	return c
}

func (t *Tracker) poke() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Snapshot returns what is known now.
func (t *Tracker) Snapshot() Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Snapshot{Since: t.since, Slots: t.slots, Runs: map[string]Counts{}}
	for id, c := range t.runs {
		copied := *c
		copied.Unscored = maps.Clone(c.Unscored)
		s.Runs[id] = copied
	}
	s.Running, s.Uploading = []Running{}, []Running{}
	for _, r := range slices.SortedFunc(maps.Values(t.running), func(a, b Running) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.TrialID, b.TrialID))
	}) {
		if r.Phase == worker.PhaseUpload {
			s.Uploading = append(s.Uploading, r)
		} else {
			s.Running = append(s.Running, r)
		}
	}
	return s
}

// Sum adds the counts of all runs.
func (s Snapshot) Sum() Counts {
	sum := Counts{Unscored: map[string]int{}}
	for _, c := range s.Runs {
		sum.Total += c.Total
		sum.Before += c.Before
		sum.Done += c.Done
		sum.Passed += c.Passed
		sum.Failed += c.Failed
		sum.Retries += c.Retries
		for class, n := range c.Unscored {
			sum.Unscored[class] += n
		}
	}
	return sum
}

// Errors is the number of trials that ended without a score.
func (c Counts) Errors() int {
	n := 0
	for _, v := range c.Unscored {
		n += v
	}
	return n
}

// ETA is how long the rest takes at the speed so far; 0 when that says nothing yet.
func (s Snapshot) ETA(now time.Time) time.Duration {
	c := s.Sum()
	made := c.Done - c.Before
	if made < 3 || c.Done >= c.Total {
		return 0
	}
	return now.Sub(s.Since) / time.Duration(made) * time.Duration(c.Total-c.Done)
}
