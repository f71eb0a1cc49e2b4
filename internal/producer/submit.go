// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// Queue is what a producer needs of a queue.
type Queue interface {
	queue.Runs
	queue.Publisher
}

// Producer submits drafts to one store and one queue.
type Producer struct {
	Store     bundle.Store
	StoreUUID string
	Queue     Queue
	Log       zerolog.Logger
	// Version of the program, for run.yaml.
	Version string
	// Pool, where it is set, takes the place of the pool that a run names: on one machine
	// one worker serves them all.
	Pool string
	// OnProgress is told after each part of the plan; may be nil.
	OnProgress func(Progress)
	// OnReopened is told how many trials of a run a retry opens anew, before they are
	// enqueued; may be nil.
	OnReopened func(run string, trials int)
}

// Progress of a submission, in trials.
type Progress struct {
	Total     int
	Planned   int // rows of the plan that are in the store
	Committed int // found to be done already
	Enqueued  int
}

// Options of a submission.
type Options struct {
	// RunID is the id to use. An id that exists continues, if its plan is the same.
	// Empty takes a default id that is free.
	RunID string
	// New says that nobody chose the id: where a run has it, that is a [TakenError] and
	// not the run to go on with.
	New bool
	// Group ties the runs of a matrix together.
	Group string
	// NotPaused refuses a run that is paused, with a [PausedError]. Else its trials wait in
	// the queue until it is resumed.
	NotPaused bool
}

// Submission is a run in the store, with its open trials enqueued.
type Submission struct {
	Record manifest.RunRecord
	// Continued: the run was there before.
	Continued bool
	Progress
}

// PlanConflictError says that a run id is taken by a run with another plan.
type PlanConflictError struct {
	RunID string
	Keys  []string // what differs, in words
}

func (e *PlanConflictError) Error() string {
	return fmt.Sprintf("run %s exists with another plan (%s); choose another run id or restore the file",
		e.RunID, strings.Join(e.Keys, "; "))
}

// TakenError says that an id that was made for a new run is another's.
type TakenError struct{ RunID string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("run id %s was just taken by another run; give the command again", e.RunID)
}

// PausedError says that a run is paused, by which decision.
type PausedError struct {
	RunID   string
	Control bundle.Control
}

func (e *PausedError) Error() string { return fmt.Sprintf("run %s %s", e.RunID, Told(&e.Control)) }

// ErrTasksChanged: the tasks are not what they were when the run was drafted.
var ErrTasksChanged = errors.New("the tasks changed while the run was being submitted; try again")

// Submit writes the run and enqueues every trial that has no commit yet. It may be
// repeated.
func (p *Producer) Submit(ctx context.Context, d *Draft, o Options) (*Submission, error) {
	sub := &Submission{Progress: Progress{Total: d.Plan.Trials}}
	var err error
	if sub.Record, sub.Continued, err = p.claim(ctx, d, o); err != nil {
		return nil, err
	}
	if sub.Continued {
		now, err := dispatch.Control(ctx, p.Store, sub.Record.RunID)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", sub.Record.RunID, err)
		}
		if now.Ended != nil {
			return nil, Ended(sub.Record.RunID, now.Ended)
		}
		if now.Paused != nil && o.NotPaused {
			return nil, &PausedError{RunID: sub.Record.RunID, Control: *now.Paused}
		}
	}
	if err := p.storeArchives(ctx, d); err != nil {
		return nil, err
	}
	if err := p.openRun(ctx, sub.Record); err != nil {
		return nil, err
	}
	s, err := p.newSubmission(ctx, d, sub)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", sub.Record.RunID, err)
	}
	if err := s.plan(ctx); err != nil {
		return nil, err
	}
	return sub, nil
}

// openRun makes a run known to the queue, as it was decided about it. A run that was ended
// is a [RefusedError].
func (p *Producer) openRun(ctx context.Context, rec manifest.RunRecord) error {
	now, err := dispatch.Control(ctx, p.Store, rec.RunID)
	if err != nil {
		return fmt.Errorf("run %s: %w", rec.RunID, err)
	}
	if now.Ended != nil {
		return Ended(rec.RunID, now.Ended)
	}
	return p.open(ctx, rec, now)
}
