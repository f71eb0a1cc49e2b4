// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// submission is a Submit at work.
type submission struct {
	*Producer
	draft *Draft
	sub   *Submission
	keys  bundle.Keys
	// release is that of the jobs. It is larger than any that the queue may remember of
	// an earlier submission; a job that is still live is skipped whatever its number.
	release int
	epochs  bundle.Epochs // of trials that were put back
	done    doneTrials    // where they were listed before; nil where each is looked up
}

func (p *Producer) newSubmission(ctx context.Context, d *Draft, sub *Submission) (*submission, error) {
	s := &submission{Producer: p, draft: d, sub: sub, keys: bundle.Keys{Run: sub.Record.RunID}, release: 1}
	if !sub.Continued {
		return s, nil
	}
	s.release = laterRelease()
	var err error
	s.epochs, err = dispatch.Epochs(ctx, p.Store, sub.Record.RunID)
	return s, err
}

// laterRelease is larger than any release that the queue may remember. Microseconds,
// because within a millisecond a job may have been done, and be needed again.
func laterRelease() int { return int(time.Now().UnixMicro()) }

// planPart is a part of the plan on its way to store and queue.
type planPart struct {
	number int
	body   []byte
	rows   []bundle.PlanRow
}

// plan writes the parts of the plan and enqueues their trials, part by part. The next part
// is made while one is stored and enqueued. A part that isn't what was drafted is neither
// written nor enqueued; those before it are.
func (s *submission) plan(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	ready := make(chan planPart)
	read := make(chan error, 1)
	go func() {
		defer close(ready)
		read <- s.readPlan(reading, ready)
	}()
	var failed error
	for p := range ready {
		if failed != nil {
			continue // reading ends
		}
		if failed = s.submitPart(ctx, p); failed != nil {
			stop()
		}
	}
	if err := <-read; failed == nil {
		failed = err
	}
	if _, refused := errors.AsType[*RefusedError](failed); refused {
		return failed // it names the run
	}
	if failed != nil {
		return fmt.Errorf("run %s: %w", s.sub.Record.RunID, failed)
	}
	return nil
}

// readPlan reads the tasks once more and sends the parts of their plan.
func (s *submission) readPlan(ctx context.Context, ready chan<- planPart) error {
	parts := bundle.NewPlanWriter(bundle.PlanLimits{}, func(part int, body []byte, rows []bundle.PlanRow) error {
		if err := s.check(part, rows); err != nil {
			return err
		}
		select {
		case ready <- planPart{part, body, rows}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	_, err := s.draft.walk(ctx, func(pack int, ref manifest.TaskRef) error {
		return s.draft.rows(parts, pack, ref, func(index int) string {
			return bundle.TrialID(s.StoreUUID, s.sub.Record.RunID, ref.ID, index)
		})
	})
	if problems, ok := errors.AsType[manifest.Problems](err); ok {
		err = fmt.Errorf("%w: %w", ErrTasksChanged, problems) // the draft saw none
	}
	if err != nil {
		return err
	}
	totals, err := parts.Finish()
	if err == nil && totals.Parts != len(s.draft.parts) {
		err = ErrTasksChanged
	}
	return err
}

// submitPart stores a part and enqueues its trials.
func (s *submission) submitPart(ctx context.Context, p planPart) error {
	err := s.store(ctx, p.number, p.body, p.rows)
	if err == nil {
		err = s.enqueue(ctx, p.number, p.rows)
	}
	if err != nil {
		return fmt.Errorf("plan part %d: %w", p.number, err)
	}
	if s.OnProgress != nil {
		s.OnProgress(s.sub.Progress)
	}
	return nil
}

func (s *submission) check(part int, rows []bundle.PlanRow) error {
	sum, err := sumPart(rows)
	if err == nil && (part >= len(s.draft.parts) || sum != s.draft.parts[part]) {
		err = ErrTasksChanged
	}
	return err
}

// store writes a part, or makes sure that the one that is there says the same: jobs
// point at its rows by number.
func (s *submission) store(ctx context.Context, part int, body []byte, rows []bundle.PlanRow) error {
	_, err := s.Store.Create(ctx, s.keys.PlanPart(part), body)
	if !errors.Is(err, bundle.ErrExists) {
		return err
	}
	there, err := bundle.ReadPlanPart(ctx, s.Store, s.keys, part)
	if err != nil {
		return err
	}
	if !slices.Equal(there, rows) {
		return errors.New("the store has other rows for it, perhaps from another version; choose another run id")
	}
	return nil
}

// enqueue publishes the rows of a part that are not done.
func (s *submission) enqueue(ctx context.Context, part int, rows []bundle.PlanRow) error {
	run := s.sub.Record.RunID
	done := make([]bool, len(rows))
	if s.done != nil {
		for i, row := range rows {
			done[i] = s.done.has(row.TrialID)
		}
	} else if s.sub.Continued {
		if err := s.findDone(ctx, rows, done); err != nil {
			return err
		}
	}
	jobs := make([]queue.Job, 0, len(rows))
	for i, row := range rows {
		s.sub.Planned++
		if done[i] {
			s.sub.Committed++
			continue
		}
		jobs = append(jobs, queue.Job{
			ID:  queue.ID{Trial: row.TrialID, Epoch: s.epochs.Of(row.TrialID), Release: s.release},
			Run: run, Body: dispatch.Body(bundle.PlanRef{Part: part, Row: i}),
		})
	}
	if len(jobs) == 0 {
		return nil
	}
	got, err := s.publish(ctx, s.sub.Record, jobs)
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	s.sub.Enqueued += got.Stored
	s.Log.Debug().Str("run_id", run).Int("part", part).
		Int("stored", got.Stored).Int("skipped", got.Skipped).Msg("plan part enqueued")
	return s.stillOpen(ctx)
}

// commitLookups is how many commits are looked up at once.
const commitLookups = 16

func (s *submission) findDone(ctx context.Context, rows []bundle.PlanRow, done []bool) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(commitLookups)
	for i, row := range rows {
		g.Go(func() error {
			c, err := bundle.FindCommit(ctx, s.Store, s.keys, row.TrialID, s.epochs.Of(row.TrialID))
			done[i] = c != nil
			return err
		})
	}
	return g.Wait()
}
