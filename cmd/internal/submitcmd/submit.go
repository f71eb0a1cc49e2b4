// SPDX-License-Identifier: Apache-2.0

// Package submitcmd is tidemill submit, and the producer.
package submitcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/control"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/naming"
	"github.com/tidemill/tidemill/cmd/internal/queues"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

type options struct {
	store string
	queue queues.Flags
	runID string
	json  bool
	vars  app.VarFlags
	log   *app.LogFlags
}

// Command returns the submit command under a name of its own.
func Command(use string, log *app.LogFlags) *cobra.Command {
	o := options{log: log}
	cmd := &cobra.Command{
		Use:   use + " FILE...",
		Short: "Put the trials of run files into a queue",
		Long: `Submit reads run files, writes their plans to the store and their trials to the queue,
and ends. Workers that serve the pool do the rest.

Submitting is idempotent: with a run id that exists and the same plan, only trials
without a commit are enqueued; with another plan it is refused, and what differs is named.
The id of each run goes to stdout, and why no worker takes its trials, where none does, to
stderr: they wait in the queue then.
` + app.ExitHelp("every run is in the queue", "", "interrupted; with --run-id the same command goes on"),
		Example: "  tidemill " + use + ` --queue nats://127.0.0.1:4222 --store /mnt/evals nightly.yaml
  tidemill ` + use + ` --run-id nightly-7 nightly.yaml`,
		Args: app.Files("run file"),
		RunE: func(cmd *cobra.Command, files []string) error { return o.execute(cmd, files) },
	}
	f := cmd.Flags()
	f.StringVar(&o.store, "store", local.DefaultDir, stores.Help+"; where it isn't given, the one that the run files name")
	o.queue.Register(f)
	f.StringVar(&o.runID, "run-id", "", "run `id` to use or to go on with; runs of a matrix add -1, -2, … (default <name>-<UTC time>)")
	f.BoolVar(&o.json, "json", false, "print a JSON object for each run instead of its id")
	o.vars.Register(cmd)
	return cmd
}

func (o options) execute(cmd *cobra.Command, paths []string) (err error) {
	ctx := cmd.Context()
	log, err := o.log.Logger(cmd.ErrOrStderr())
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
	if err := o.queue.Check(); err != nil {
		return err
	}
	if o.store, err = stores.ForRuns(o.store, cmd.Flags().Changed("store"), files); err != nil {
		return err
	}
	drafts, closeDrafts, err := draftAll(ctx, files, load)
	defer app.Closing(&err, closeDrafts)
	if err != nil {
		return app.InputError(ctx, err)
	}
	p, closeAll, err := o.connect(ctx, log)
	if err != nil {
		return err
	}
	defer app.Closing(&err, closeAll)
	subs, err := o.submit(ctx, p, drafts, cmd.OutOrStdout())
	if roster, ok := p.Queue.(queue.Roster); ok && ctx.Err() == nil {
		warn(ctx, cmd.ErrOrStderr(), roster, subs)
	}
	return err
}

// draftAll reads every task of every run, file by file.
func draftAll(ctx context.Context, files []app.RunFile, load manifest.LoadOptions) (drafts [][]*producer.Draft, closeAll func() error, err error) {
	var closers []func() error
	closeAll = func() error {
		var errs []error
		for _, c := range closers {
			errs = append(errs, c())
		}
		return errors.Join(errs...)
	}
	for _, file := range files {
		var ofFile []*producer.Draft
		for _, run := range file.Runs {
			d, err := producer.NewDraft(ctx, run, load, "")
			if err != nil {
				return nil, closeAll, err
			}
			closers = append(closers, d.Close)
			ofFile = append(ofFile, d)
		}
		drafts = append(drafts, ofFile)
	}
	return drafts, closeAll, nil
}

func (o options) connect(ctx context.Context, log zerolog.Logger) (*producer.Producer, func() error, error) {
	store, identity, err := stores.OpenForWriting(ctx, o.store)
	if err != nil {
		return nil, nil, err
	}
	q, err := o.queue.Dial(ctx, identity.StoreUUID)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	p := &producer.Producer{Store: store, StoreUUID: identity.StoreUUID, Queue: q, Log: log, Version: version.String()}
	return p, func() error { return errors.Join(q.Close(), store.Close()) }, nil
}

func (o options) submit(ctx context.Context, p *producer.Producer, drafts [][]*producer.Draft, stdout io.Writer) (subs []*producer.Submission, err error) {
	namer := naming.Namer{RunID: o.runID, Store: p.Store, Now: time.Now()}
	for _, ofFile := range drafts {
		err := namer.Submit(ctx, ofFile, func(d *producer.Draft, names producer.Options) error {
			sub, err := p.Submit(ctx, d, names)
			if _, ok := errors.AsType[*producer.PlanConflictError](err); ok {
				return app.Usage(err)
			}
			if err != nil {
				return control.Explain(err)
			}
			subs = append(subs, sub)
			return o.print(stdout, sub)
		})
		if err != nil {
			return subs, err
		}
	}
	return subs, nil
}

func (o options) print(w io.Writer, sub *producer.Submission) error {
	if !o.json {
		_, err := fmt.Fprintln(w, sub.Record.RunID)
		return err
	}
	return json.NewEncoder(w).Encode(map[string]any{
		"run_id": sub.Record.RunID, "group": sub.Record.Group, "continued": sub.Continued,
		"trials": sub.Total, "committed": sub.Committed, "enqueued": sub.Enqueued,
	})
}
