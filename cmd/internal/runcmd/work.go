// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"
	"errors"
	"sync"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/control"
	"github.com/tidemill/tidemill/cmd/internal/live"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/sweep"
	"github.com/tidemill/tidemill/internal/worker"
)

var errDone = errors.New("every trial is done")

// work submits the runs and runs their trials side by side. It returns the cause when
// ctx ended before everything was done.
func (s *session) work(ctx context.Context) error {
	s.tracker = progress.NewTracker(s.slots)
	s.reporter = progress.NewReporter(s.stderr, s.tracker)
	defer s.reporter.Close()
	w, err := worker.New(worker.Config{
		Slots: s.slots, Store: s.store, StoreUUID: s.identity.StoreUUID, Queue: s.queue, Runtimes: s.runtimes,
		Dir: s.dir.Worker(), Version: version.String(), Log: s.log, DrainTimeout: s.drain, OnEvent: s.reporter.Observe,
	})
	if err != nil {
		return err
	}
	// The lock proves that whoever left a sandbox here is gone, unless workers may come
	// from elsewhere.
	sweeping, err := s.sweep.Start(ctx, sweep.Config{
		Store: s.identity.StoreUUID, Leases: s.queue, Log: s.log,
		Sources: runtimes.Sources(s.runtimes, func(kind string) bool { return runtimes.Alone(kind, s.listens != "") }),
	}, w)
	if err != nil {
		return err
	}
	shown := &live.Server{Find: w.Attempt}
	gov, err := s.governor(w.Name)
	if err != nil {
		return err
	}
	stopServing, err := s.dir.Serve(s.tracker.Snapshot, append(shown.Routes(), control.Route(s.obey))...)
	if err != nil {
		// Clients can still read the store.
		s.log.Warn().Err(err).Msg("no clients can ask this process what is running")
	} else {
		defer shown.Wait()
		defer stopServing()
	}
	if s.listens != "" {
		s.reporter.Listening(s.listens)
	}

	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	var workErr error
	wg.Go(func() { workErr = w.Run(serving) })
	wg.Go(func() { sweeping(serving) })
	wg.Go(func() { gov.Run(serving) })
	wg.Go(func() { s.watchSignals(ctx, w) })
	err = s.submit(ctx)
	if err == nil {
		err = s.await(ctx)
	}
	stop(errDone)
	if _, ok := errors.AsType[broken](err); ok {
		w.Hurry()
	}
	wg.Wait()
	if err != nil && ctx.Err() != nil {
		if workErr != nil {
			s.log.Error().Err(workErr).Msg("something could not be given back")
		}
		return context.Cause(ctx)
	}
	return errors.Join(err, workErr)
}

// watchSignals says what the first Ctrl-C began, and passes the second on.
func (s *session) watchSignals(ctx context.Context, w *worker.Worker) {
	select {
	case <-ctx.Done():
		s.reporter.Stopping(s.drain)
	case <-w.Stopped():
		return
	}
	select {
	case <-app.Hurry(ctx):
		w.Hurry()
	case <-w.Stopped():
	}
}
