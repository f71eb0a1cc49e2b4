// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/control"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/governor"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// works are the runs that this process works on, for those who give orders about them.
type works struct {
	mu   sync.Mutex
	runs map[string]manifest.RunRecord
}

func (w *works) add(rec manifest.RunRecord) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs = map[string]manifest.RunRecord{}
	}
	w.runs[rec.RunID] = rec
}

func (w *works) has(run string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.runs[run]
	return ok
}

// obey carries out an order of a client. About a run that this process doesn't work on it
// is only written down.
func (s *session) obey(ctx context.Context, o producer.Order) (*producer.Answer, error) {
	rec, err := dispatch.LoadRun(ctx, s.store, o.Run)
	if err != nil {
		return nil, err
	}
	p := producer.Producer{
		Store: s.store, StoreUUID: s.identity.StoreUUID, Log: s.log, Version: version.String(), Pool: queue.DefaultPool,
		OnReopened: s.tracker.Reopen,
	}
	if s.works.has(o.Run) {
		p.Queue = s.queue
	}
	a, err := p.Give(ctx, rec, o)
	if err == nil && a.Changed {
		s.reporter.Decided(progress.Decision{RunID: o.Run, Kind: o.Kind, Rev: a.Rev, By: o.By, Why: o.Detail})
	}
	return a, err
}

// governor keeps the runs within their limits, and what is decided in the store obeyed.
func (s *session) governor(name string) (*governor.Governor, error) {
	return governor.New(governor.Config{
		Store: s.store, Queue: s.queue, Name: name, Log: s.log, Pool: queue.DefaultPool, Every: governor.Often,
		OnDecision: func(run string, c bundle.Control) {
			s.reporter.Decided(progress.Decision{RunID: run, Kind: c.Kind, Rev: c.Rev, By: c.By, Why: c.Detail()})
		},
	})
}

// heldError says that the process ends because nothing may go on.
type heldError struct {
	data   string
	paused *producer.PausedError
}

func (e *heldError) Error() string { return e.paused.Error() }

// explain is the error for people, with the exit code of what can be gone on with.
func (e *heldError) explain() error {
	how := fmt.Sprintf("tidemill resume --data %s %s lets it go on", e.data, e.paused.RunID)
	if e.paused.Control.Reason() == bundle.ReasonBudget {
		how = fmt.Sprintf("tidemill limits --data %s %s --max-budget-usd N lets it go on", e.data, e.paused.RunID)
	}
	return &app.CodeError{Code: app.ExitInterrupted, Err: app.Hint(e, "%s; then give the same command again", how)}
}

// held returns why none of the runs that have something left can go on: a limit paused
// them, and nobody may be there to let them go on. For a person's pause the process waits.
func (s *session) held(ctx context.Context) (*heldError, error) {
	var first *heldError
	for _, r := range s.runs {
		st, err := s.stats(ctx, r.RunID)
		if err != nil {
			return nil, err
		}
		if st.Live() == 0 {
			continue
		}
		if st.InFlight > 0 {
			return nil, nil
		}
		now, err := dispatch.Control(ctx, s.store, r.RunID)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", r.RunID, err)
		}
		if now.Paused.Reason() == "" {
			return nil, nil
		}
		if first == nil {
			first = &heldError{s.data, &producer.PausedError{RunID: r.RunID, Control: *now.Paused}}
		}
	}
	return first, nil
}

// stats counts what the queue has of a run.
func (s *session) stats(ctx context.Context, run string) (queue.Stats, error) {
	st, err := s.queue.Stats(ctx, run)
	if errors.Is(err, queue.ErrUnknownRun) {
		return st, nil // complete, and closed
	}
	if err != nil {
		return st, fmt.Errorf("run %s: %w", run, err)
	}
	return st, nil
}

// refused explains why a run can't be gone on with.
func (s *session) refused(err error) error {
	if paused, ok := errors.AsType[*producer.PausedError](err); ok {
		return (&heldError{s.data, paused}).explain()
	}
	return control.Explain(err)
}
