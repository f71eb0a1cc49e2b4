// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/procs"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/runtime"
)

// session is one execution of the command, with everything that it opened.
type session struct {
	options
	stdout, stderr io.Writer
	log            zerolog.Logger
	dir            *local.Dir
	store          bundle.Store
	identity       bundle.StoreRecord
	runtimes       map[string]runtime.Runtime
	queue          *natsqueue.Queue
	listens        string                      // where others find the queue; empty without
	drafts         [][]*producer.Draft         // of each run file
	runs           []manifest.RunRecord        // those that were submitted
	submit         func(context.Context) error // enqueues what is to be done
	tracker        *progress.Tracker
	reporter       progress.Reporter
	// sick is why the embedded queue gave up, nil while it works.
	sick   atomic.Pointer[string]
	hangUp atomic.Pointer[hangUp] // nil until there is a connection
	undo   []func() error         // newest last
	// works has the runs of runs, for those who give orders.
	works works
}

// execute does it all. What can be wrong with the input is found before anything runs.
func (o options) execute(cmd *cobra.Command, paths []string) (err error) {
	ctx := cmd.Context()
	s, err := o.session(cmd)
	if err != nil {
		return err
	}
	files, load, err := o.vars.LoadRuns(paths...)
	if err != nil {
		return err
	}
	if err := app.CheckRunID(o.runID, files); err != nil {
		return err
	}
	if err := o.noteStore(s.log); err != nil {
		return err
	}
	if err := stores.OnlyHere(o.data, "tidemill run", files); err != nil {
		return err
	}
	defer app.Closing(&err, s.close)
	if err := s.open(ctx, "tidemill run"); err != nil {
		return err
	}
	if err := s.draft(ctx, files, load); err != nil {
		return err
	}
	s.submit = s.submitAll
	return s.conclude(ctx)
}

// noteStore says that a run goes into the data directory, where a store is named for other
// commands.
func (o *options) noteStore(log zerolog.Logger) error {
	rank, from := o.other.Named(o.data)
	if rank == app.ByCommandLine {
		return o.other.Refuse("run", o.data)
	}
	if rank != app.ByDefault {
		log.Warn().Str("data", o.data).Msg(from + " names a store, which tidemill run doesn't use: results go into its data directory; tidemill submit is for others")
	}
	return nil
}

// session begins an execution.
func (o options) session(cmd *cobra.Command) (s *session, err error) {
	procs.Widen()
	s = &session{options: o, stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
	if app.IsTerminal(s.stderr) {
		s.stderr = progress.NewScreen(s.stderr)
	}
	s.log, err = o.log.Logger(s.stderr)
	return s, err
}

// conclude does what comes once it is known what is to be done.
func (s *session) conclude(ctx context.Context) error {
	if err := s.startQueue(ctx); err != nil {
		return err
	}
	worked := s.work(ctx)
	held, isHeld := errors.AsType[*heldError](worked)
	if worked != nil && !isHeld && !errors.Is(worked, app.ErrInterrupted) {
		return worked
	}
	// Even an interrupted run gets its report: of what there is.
	err := s.report(context.WithoutCancel(ctx), worked != nil)
	if isHeld && errors.Is(err, app.ErrInterrupted) {
		return held.explain()
	}
	return err
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
func (s *session) open(ctx context.Context, command string) (err error) {
	if s.dir, err = local.Acquire(s.data, command); err != nil {
		return local.Explain(err, "data")
	}
	s.onClose(s.dir.Release)
	if err := s.dir.Reset(); err != nil {
		return err
	}
	s.onClose(s.dir.Clear)
	if s.store, s.identity, err = stores.OpenForWriting(ctx, s.dir.Store()); err != nil {
		return err
	}
	s.onClose(s.store.Close)
	return nil
}
