// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/runtime"
)

// session is one execution of the command, with everything that it opened.
type session struct {
	options
	log      zerolog.Logger
	dir      *local.Dir
	store    bundle.Store
	identity bundle.StoreRecord
	runtimes map[string]runtime.Runtime
	queue    *natsqueue.Queue
	drafts   []*producer.Draft
	runs     []manifest.RunRecord // those that were submitted
	tracker  *progress.Tracker
	undo     []func() error // newest last
}

// execute does it all. What can be wrong with the input is found before anything runs.
func (o options) execute(cmd *cobra.Command, files []string) (err error) {
	ctx := cmd.Context()
	s := &session{options: o}
	if s.log, err = o.log.Logger(cmd.ErrOrStderr()); err != nil {
		return err
	}
	load, err := o.vars.Options()
	if err != nil {
		return err
	}
	runs, err := app.LoadRuns(files, load)
	if err != nil {
		return err
	}
	if o.runID != "" && len(runs) > 1 {
		return app.Usage(fmt.Errorf("--run-id names one run, and the files make %d; leave it out", len(runs)))
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.draft(ctx, runs, load); err != nil {
		return err
	}
	if err := s.startQueue(ctx); err != nil {
		return err
	}
	// The lock proves that whoever left a sandbox here is gone.
	if err := runtimes.Sweep(ctx, s.runtimes, s.identity.StoreUUID, s.log); err != nil {
		return err
	}
	worked := s.work(ctx, cmd.ErrOrStderr())
	if worked != nil && !errors.Is(worked, app.ErrInterrupted) {
		return worked
	}
	// Even an interrupted run gets its report: of what there is.
	if err := s.report(context.WithoutCancel(ctx), cmd.OutOrStdout(), cmd.ErrOrStderr(), worked != nil); err != nil {
		return err
	}
	return nil
}

func (s *session) onClose(f func() error) { s.undo = append(s.undo, f) }

// close gives everything back, in reverse.
func (s *session) close() error {
	var errs []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		errs = append(errs, s.undo[i]())
	}
	return errors.Join(errs...)
}

// open becomes the data directory's owner and opens the store.
func (s *session) open(ctx context.Context) error {
	dir, err := local.Acquire(s.data, "tidemill run")
	if busy, ok := errors.AsType[*local.BusyError](err); ok {
		return app.Hint(busy, "wait for it, look with: tidemill status --data "+s.data+", or choose another directory with --data")
	}
	if err != nil {
		return err
	}
	s.dir = dir
	s.onClose(dir.Release)
	if err := dir.Reset(); err != nil {
		return err
	}
	if s.store, s.identity, err = stores.OpenForWriting(ctx, dir.Store()); err != nil {
		return err
	}
	s.onClose(s.store.Close)
	return nil
}

// draft reads every task of every run, and asks the runtimes whether they can do what
// the runs want.
func (s *session) draft(ctx context.Context, runs []*manifest.Run, load manifest.LoadOptions) error {
	types := map[string]bool{}
	var needed []string
	for _, run := range runs {
		if !types[run.Runtime.Type] {
			types[run.Runtime.Type] = true
			needed = append(needed, run.Runtime.Type)
		}
	}
	var err error
	if s.runtimes, err = runtimes.New(runtimes.Config{Dir: s.dir.Work(), StoreUUID: s.identity.StoreUUID}, needed...); err != nil {
		return app.Usage(err)
	}
	s.onClose(func() error { return runtimes.Close(s.runtimes) })
	for _, run := range runs {
		if err := s.admit(ctx, run); err != nil {
			return err
		}
		d, err := producer.NewDraft(ctx, run, load, s.dir.Temp())
		if err != nil {
			if ctx.Err() != nil {
				return interrupted(ctx)
			}
			return app.Usage(err)
		}
		s.onClose(d.Close)
		s.drafts = append(s.drafts, d)
	}
	return nil
}

// admit refuses a run that could not run here.
func (s *session) admit(ctx context.Context, run *manifest.Run) error {
	_, missing := trial.SecretsFrom(run.Agent.Secrets)
	if len(missing) > 0 {
		return app.Usage(fmt.Errorf("%s: agent.secrets: %s is not set in the environment; export it first", run.File, missing[0]))
	}
	env, err := s.runtimes[run.Runtime.Type].Prepare(ctx, trial.RunSpec(*run, "admission", s.identity.StoreUUID, "admission"))
	if err != nil {
		err = fmt.Errorf("%s: %w", run.File, err)
		if _, ok := errors.AsType[*runtime.UnsupportedError](err); ok {
			return app.Usage(err)
		}
		return err
	}
	return env.Close(ctx)
}

// newWorker makes the worker of this process.
func (s *session) newWorker(observe func(worker.Event)) (*worker.Worker, error) {
	return worker.New(worker.Config{
		Slots: s.slots, Store: s.store, StoreUUID: s.identity.StoreUUID, Queue: s.queue, Runtimes: s.runtimes,
		Dir: s.dir.Worker(), Version: version.String(), Log: s.log, DrainTimeout: s.drain, OnEvent: observe,
	})
}

func interrupted(ctx context.Context) error {
	return &app.CodeError{Code: app.ExitInterrupted, Err: context.Cause(ctx)}
}
