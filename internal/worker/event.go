// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"time"

	"github.com/tidemill/tidemill/bundle"
)

// EventKind says what happened to a trial.
type EventKind string

// The kinds of events.
const (
	Started   EventKind = "started"   // an attempt was claimed
	Phase     EventKind = "phase"     // an attempt entered a phase
	Committed EventKind = "committed" // the trial is done
	Found     EventKind = "found"     // the trial was done already
	Retrying  EventKind = "retrying"  // the attempt failed and will be repeated
	Dropped   EventKind = "dropped"   // the attempt ended without a commit
)

// PhaseUpload is the last phase of an attempt: its bundle goes to the store, and its slot
// is free for another.
const PhaseUpload = "upload"

// Event is told to Config.OnEvent.
type Event struct {
	Kind       EventKind
	At         time.Time
	Run        string
	TaskID     string
	TrialID    string
	TrialIndex int
	Attempt    int
	Phase      string
	Outcome    bundle.Outcome
	Grade      bundle.Grade
	Latency    time.Duration
	// Why and After explain a Retrying or Dropped event.
	Why   string
	After time.Duration
	// Capacity: there was no room for the attempt, and it is not counted.
	Capacity bool
}
