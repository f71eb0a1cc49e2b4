// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue"
)

// work submits the runs and runs their trials side by side. It returns the cause when
// ctx ended before everything was done.
func (s *session) work(ctx context.Context, stderr io.Writer) error {
	s.tracker = progress.NewTracker("", s.slots)
	observe, stopShow := s.show(stderr)
	defer stopShow()
	w, err := s.newWorker(observe)
	if err != nil {
		return err
	}
	stopServing, err := s.dir.Serve(s.tracker.Snapshot)
	if err != nil {
		return err
	}
	defer stopServing()

	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	var workErr error
	wg.Go(func() { workErr = w.Run(serving) })
	wg.Go(func() {
		select {
		case <-app.Hurry(ctx):
			w.Hurry()
		case <-w.Stopped():
		}
	})
	err = s.submit(ctx)
	if err == nil {
		err = s.await(ctx)
	}
	stop(errDone)
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(err, workErr)
}

var errDone = errors.New("every trial is done")

// show sets up how progress is shown.
func (s *session) show(stderr io.Writer) (observe func(worker.Event), stop func()) {
	if f, ok := stderr.(*os.File); ok && app.IsTerminal(f) {
		quit, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			progress.Bar(f, s.tracker, quit)
		}()
		return s.tracker.Observe, func() { close(quit); <-done }
	}
	lines := &progress.Lines{W: stderr}
	return func(e worker.Event) { s.tracker.Observe(e); lines.Observe(e) }, func() {}
}

// submit enqueues what is open of every run.
func (s *session) submit(ctx context.Context) error {
	group := ""
	if len(s.drafts) > 1 {
		group = producer.NewGroupID(s.drafts[0].Run.Name, time.Now())
	}
	for i, d := range s.drafts {
		opts := producer.Options{RunID: s.runID}
		if opts.RunID == "" {
			found, err := producer.FindUnfinished(ctx, s.store, d.Plan.Digest, s.runIDs())
			if err != nil {
				return err
			}
			switch {
			case found != nil:
				opts.RunID = found.RunID
			case group != "":
				opts.RunID, opts.Group = group+"-"+strconv.Itoa(i+1), group
			}
		}
		p := producer.Producer{
			Store: s.store, StoreUUID: s.identity.StoreUUID, Queue: s.queue, Log: s.log, Version: version.String(),
			Pool: queue.DefaultPool,
		}
		sub, err := p.Submit(ctx, d, opts)
		if _, ok := errors.AsType[*producer.PlanConflictError](err); ok {
			return app.Usage(err)
		}
		if err != nil {
			return err
		}
		s.tracker.Plan(sub.Record.RunID, sub.Total, sub.Committed)
		s.runs = append(s.runs, sub.Record)
		if sub.Continued {
			s.log.Info().Str("run_id", sub.Record.RunID).Int("done", sub.Committed).Int("total", sub.Total).Msg("going on with a run")
		}
	}
	return nil
}

// runIDs are the runs that were submitted so far. A matrix whose value nothing uses makes
// runs with one plan, and the second must not go on with the first.
func (s *session) runIDs() []string {
	ids := make([]string, len(s.runs))
	for i, r := range s.runs {
		ids[i] = r.RunID
	}
	return ids
}

// await returns when no job of the runs is live any more.
func (s *session) await(ctx context.Context) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		live := 0
		for _, r := range s.runs {
			st, err := s.queue.Stats(ctx, r.RunID)
			if err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return fmt.Errorf("run %s: %w", r.RunID, err)
			}
			live += st.Live()
		}
		if live == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		case <-s.doneByCount():
		}
	}
}

// doneByCount returns a channel that is ready when the events say that all is done, so
// that the end is seen at once and not at the next tick.
func (s *session) doneByCount() <-chan struct{} {
	c := s.tracker.Snapshot().Sum()
	if c.Done < c.Total {
		return s.tracker.Changed()
	}
	return nil
}
