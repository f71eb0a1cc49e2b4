// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"cmp"
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
	RunID string
	// Group ties the runs of a matrix together.
	Group string
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
	if err := p.storeArchives(ctx, d); err != nil {
		return nil, err
	}
	qrun, err := dispatch.QueueRun(sub.Record)
	if err != nil {
		return nil, err
	}
	qrun.Pool = cmp.Or(p.Pool, qrun.Pool)
	if err := p.Queue.OpenRun(ctx, qrun); err != nil {
		return nil, fmt.Errorf("open run %s: %w", sub.Record.RunID, err)
	}
	if err := p.newSubmission(d, sub).plan(ctx); err != nil {
		return nil, err
	}
	return sub, nil
}
