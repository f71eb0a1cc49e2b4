// SPDX-License-Identifier: Apache-2.0

// Package statuscmd is tidemill status: what the store knows of runs, and what the
// process that works on them says.
package statuscmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/queues"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/internal/producer"
)

type options struct {
	store stores.Flags
	queue queues.Flags
	json  bool
	watch bool
}

// Command returns the status command.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show how far runs are",
		Long: `Status lists the runs of a store, newest first, or tells about one of them: trials by
outcome, and what is running now. The group of a matrix lists its runs. It only reads, and
may be used while a run goes on; a process that works the data directory is asked over its
socket, and the workers of a fleet through the queue that --queue names.

With --watch it goes on telling about a run, the newest if none is named, until every
trial is done: drawn anew on a terminal, and as a JSON line for each change elsewhere.
Ctrl-C ends it; the run goes on.
` + app.ExitHelp("told", "", ""),
		Example: `  tidemill status
  tidemill status nightly-7
  tidemill status --watch
  tidemill status --data /var/lib/evals --json
  tidemill status --store /mnt/evals --queue nats://127.0.0.1:4222 nightly-7`,
		Args: app.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args) },
	}
	o.store.Register(cmd)
	o.queue.Register(cmd.Flags())
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on until the run is complete")
	return cmd
}

func (o options) execute(cmd *cobra.Command, args []string) (err error) {
	ctx := cmd.Context()
	store, err := stores.OpenExisting(ctx, o.store.Where())
	if err != nil {
		return err
	}
	defer app.Closing(&err, store.Close)
	from, err := connect(ctx, store, o.store.Where(), &o.queue, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer app.Closing(&err, from.close)
	if o.watch {
		return o.follow(cmd, store, from, args)
	}
	if len(args) == 0 {
		return printAll(ctx, cmd.OutOrStdout(), store, from, o.json)
	}
	recs, err := trials.Resolve(ctx, store, args[0])
	if err != nil {
		return err
	}
	if recs[0].RunID != args[0] { // a group
		runs := make([]summary, len(recs))
		for i, rec := range recs {
			if runs[i], err = count(ctx, store, rec); err != nil {
				return err
			}
		}
		return printRuns(ctx, cmd.OutOrStdout(), runs, from, o.json)
	}
	d, err := describe(ctx, store, from, args[0])
	if err != nil {
		return err
	}
	if o.json {
		return app.PrintJSON(cmd.OutOrStdout(), d)
	}
	return d.Write(cmd.OutOrStdout())
}

// PrintRuns lists the runs of a store, the newest first. where is what the store was
// opened by: a process that works there is asked what is running, or the queue that flags
// name.
func PrintRuns(ctx context.Context, w, stderr io.Writer, store bundle.Store, where string, flags *queues.Flags, asJSON bool) (err error) {
	from, err := connect(ctx, store, where, flags, stderr)
	if err != nil {
		return err
	}
	defer app.Closing(&err, from.close)
	return printAll(ctx, w, store, from, asJSON)
}

func printAll(ctx context.Context, w io.Writer, store bundle.Store, from *sources, asJSON bool) error {
	runs, err := list(ctx, store)
	if err != nil {
		return err
	}
	return printRuns(ctx, w, runs, from, asJSON)
}

func printRuns(ctx context.Context, w io.Writer, runs []summary, from *sources, asJSON bool) error {
	n, err := from.ask(ctx)
	if err != nil {
		return err
	}
	mark(runs, n)
	if asJSON {
		return app.PrintJSON(w, runs)
	}
	return writeList(w, runs)
}

// Describe tells about a run. where and flags are as in [PrintRuns].
func Describe(ctx context.Context, stderr io.Writer, store bundle.Store, where string, flags *queues.Flags, runID string) (d *Description, err error) {
	from, err := connect(ctx, store, where, flags, stderr)
	if err != nil {
		return nil, err
	}
	defer app.Closing(&err, from.close)
	return describe(ctx, store, from, runID)
}

func describe(ctx context.Context, store bundle.Store, from *sources, runID string) (*Description, error) {
	rec, err := trials.Load(ctx, store, runID)
	if err != nil {
		return nil, err
	}
	return lookAgain(ctx, from, newCounter(store, rec))
}

// lookAgain asks first and counts then: what was done meanwhile is counted, and neither
// running nor lost.
func lookAgain(ctx context.Context, from *sources, c *counter) (*Description, error) {
	n, err := from.ask(ctx)
	if err == nil && n.fleet != nil {
		err = n.fleet.count(ctx, c.rec.RunID)
	}
	if err != nil {
		return nil, err
	}
	d, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	return d, d.attach(ctx, n)
}

// mark says which runs somebody is working on.
func mark(runs []summary, n news) {
	for i := range runs {
		if runs[i].State == producer.StateOpen && n.works(runs[i].RunID) {
			runs[i].State = stateRunning
		}
		runs[i].look(n)
	}
}
