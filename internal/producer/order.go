// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// Order is what somebody wants to be decided about a run.
type Order struct {
	// Kind is pause, resume, cancel, stop, priority, limits or retry, as in [bundle.Control].
	Kind string `json:"kind"`
	Run  string `json:"run_id"`
	// By says who decides.
	By string `json:"by"`
	// Reason and Detail say why, in a word and in a sentence; see [bundle.ArgReason].
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Priority of a priority order.
	Priority string `json:"priority,omitempty"`
	// Limits of a limits order.
	Limits bundle.LimitChanges `json:"limits,omitzero"`
	// Select of a retry.
	Select Selection `json:"select,omitzero"`
}

// Answer is what came of an order.
type Answer struct {
	Run  string `json:"run_id"`
	Kind string `json:"kind"`
	// Rev of the decision that holds now: the new one, or the one that said the same
	// before; 0 where nothing had to be decided.
	Rev int `json:"rev"`
	// Changed: it was decided now.
	Changed bool `json:"changed"`
	// Queued: the queue was told. Without it whoever works on the run finds the decision
	// in the store.
	Queued bool `json:"queued"`
	// Untold is why the queue could not be told, which was at hand.
	Untold string `json:"untold,omitempty"`
	// Unpublished: the queue was not told, and trials may be missing there which nobody
	// puts in by himself: the same order has to be given again, with the queue at hand.
	Unpublished bool `json:"unpublished,omitempty"`
	// State is open, paused, cancelled, stopped or complete, now.
	State string `json:"state"`
	// Dropped is how many waiting trials left the queue.
	Dropped int `json:"dropped,omitempty"`
	// Trials are those without a result, or the ones that a retry put back; Enqueued is
	// how many of them were not in the queue.
	Trials   int `json:"trials,omitempty"`
	Enqueued int `json:"enqueued,omitempty"`
	// LeftOut counts selected trials that were not put back, by why.
	LeftOut map[string]int `json:"left_out,omitempty"`
	// OtherGraders counts, for a retry, the trials of the run that had verdicts of other
	// packs than its own before, by the sha256 of the pack that graded them again.
	OtherGraders map[string]int `json:"other_graders,omitempty"`
	// TakenOver is how many of a retry's Trials a regrade had put back that has not come to
	// them yet.
	TakenOver int `json:"taken_over,omitempty"`
}

// States of a run.
const (
	StateOpen      = "open"
	StateComplete  = "complete"
	StatePaused    = "paused"
	StateCancelled = "cancelled"
	StateStopped   = "stopped"
)

// State is what a run is called after these decisions, with so many of its trials done.
func State(s bundle.ControlState, done, trials int) string {
	switch {
	case done >= trials:
		return StateComplete
	case s.Ended != nil && s.Ended.Kind == bundle.ControlStop:
		return StateStopped
	case s.Ended != nil:
		return StateCancelled
	case s.Paused != nil:
		return StatePaused
	}
	return StateOpen
}

// Give carries an order out. The decision is written first, then the queue is told; where
// that fails, giving the order again tells it. The same order twice decides once. A
// producer without a queue only decides.
//
// What can't be decided is a [RefusedError], a queue that can't be told an [UntoldError].
func (p *Producer) Give(ctx context.Context, rec manifest.RunRecord, o Order) (*Answer, error) {
	var a *Answer
	var err error
	if o.Kind == bundle.ControlRetry {
		a, err = p.retry(ctx, rec, o)
	} else {
		a, err = p.steer(ctx, rec, o)
	}
	if a == nil {
		return nil, err
	}
	a.Run, a.Kind, a.Queued = rec.RunID, o.Kind, p.Queue != nil && err == nil
	a.Unpublished = a.Unpublished && !a.Queued
	if err != nil {
		a.Untold = err.Error()
		return nil, &UntoldError{a, err}
	}
	return a, nil
}

// steer returns an answer beside the error where the queue could not be told.
func (p *Producer) steer(ctx context.Context, rec manifest.RunRecord, o Order) (*Answer, error) {
	done, _, err := dispatch.LookAt(ctx, p.Store, rec.RunID)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", rec.RunID, err)
	}
	a := &Answer{}
	var was, now bundle.ControlState
	decided, err := bundle.AppendControl(ctx, p.Store, bundle.Keys{Run: rec.RunID}, func(before []bundle.Control) (bundle.Control, error) {
		now, err = bundle.FoldControl(before)
		if err != nil {
			return bundle.Control{}, err
		}
		was = now
		c, err := rule(rec, o, now, done)
		if err == nil {
			c.Rev = len(before) + 1
			now, err = bundle.FoldControl(append(before[:len(before):len(before)], c))
		}
		return c, err
	})
	said, nothing := errors.AsType[*saidError](err)
	switch {
	case nothing:
		a.Rev = said.rev
	case err != nil:
		if _, refused := errors.AsType[*RefusedError](err); refused {
			return nil, err
		}
		return nil, fmt.Errorf("run %s: %w", rec.RunID, err)
	default:
		a.Rev, a.Changed = decided.Rev, true
	}
	a.State, a.Unpublished = State(now, done, rec.Plan.Trials), unpublished(o, was, now)
	if p.Queue == nil {
		return a, nil
	}
	return a, p.enforce(ctx, rec, o, now, a)
}

// enforce tells the queue, and puts in what is missing where the run goes on again.
func (p *Producer) enforce(ctx context.Context, rec manifest.RunRecord, o Order, now bundle.ControlState, a *Answer) error {
	goesOn := o.Kind == bundle.ControlResume || o.Kind == bundle.ControlLimits && now.Ended == nil
	if !goesOn {
		dropped, err := p.Tell(ctx, rec, now)
		a.Dropped = dropped
		return err
	}
	pr, err := p.Rebuild(ctx, rec)
	a.Trials, a.Enqueued = pr.Total-pr.Committed, pr.Enqueued
	if _, ended := errors.AsType[*RefusedError](err); ended && o.Kind == bundle.ControlLimits {
		// The new limit has stopped it already; the decision stands.
		err = nil
	}
	return err
}

// Tell makes the queue treat a run as decided, and returns how many waiting jobs that
// dropped. A run that has ended and is not open there needs nothing.
func (p *Producer) Tell(ctx context.Context, rec manifest.RunRecord, s bundle.ControlState) (dropped int, err error) {
	if s.Ended == nil {
		return 0, p.open(ctx, rec, s)
	}
	// Held first: what is published between the purge and its end is not delivered.
	err = p.Queue.PauseRun(ctx, rec.RunID)
	if err == nil {
		dropped, err = p.Queue.PurgeRun(ctx, rec.RunID)
	}
	if errors.Is(err, queue.ErrUnknownRun) {
		return 0, nil
	}
	return dropped, err
}

// publish puts jobs of a run in, which this producer has opened. The run may have left the
// queue since: its last trial was done, or the queue was wiped.
func (p *Producer) publish(ctx context.Context, rec manifest.RunRecord, jobs []queue.Job) (queue.Published, error) {
	got, err := p.Queue.Publish(ctx, rec.RunID, jobs)
	if !errors.Is(err, queue.ErrUnknownRun) {
		return got, err
	}
	if err := p.openRun(ctx, rec); err != nil {
		return got, err
	}
	return p.Queue.Publish(ctx, rec.RunID, jobs)
}

// open makes a run known to the queue, or changes it there.
func (p *Producer) open(ctx context.Context, rec manifest.RunRecord, s bundle.ControlState) error {
	run, err := dispatch.QueueRun(rec)
	if err != nil {
		return err
	}
	run = dispatch.Steer(run, s)
	run.Pool = cmp.Or(p.Pool, run.Pool)
	if err := p.Queue.OpenRun(ctx, run); err != nil {
		return fmt.Errorf("open run %s: %w", rec.RunID, err)
	}
	return nil
}
