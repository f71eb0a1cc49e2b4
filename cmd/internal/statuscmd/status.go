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
	"github.com/tidemill/tidemill/cmd/internal/live"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/trials"
)

type options struct {
	store stores.Flags
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
socket.

With --watch it goes on telling about a run, the newest if none is named, until every
trial is done: drawn anew on a terminal, and as a JSON line for each change elsewhere.
Ctrl-C ends it; the run goes on.
` + app.ExitHelp("told", "", ""),
		Example: `  tidemill status
  tidemill status nightly-7
  tidemill status --watch
  tidemill status --data /var/lib/evals --json`,
		Args: app.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args) },
	}
	o.store.Register(cmd)
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
	if o.watch {
		return o.follow(cmd, store, args)
	}
	if len(args) == 0 {
		return PrintRuns(ctx, cmd.OutOrStdout(), store, o.store.Where(), o.json)
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
		return printRuns(ctx, cmd.OutOrStdout(), runs, o.store.Where(), o.json)
	}
	d, err := Describe(ctx, store, o.store.Where(), args[0])
	if err != nil {
		return err
	}
	if o.json {
		return app.PrintJSON(cmd.OutOrStdout(), d)
	}
	return d.Write(cmd.OutOrStdout())
}

// PrintRuns lists the runs of a store, the newest first. where is what the store was
// opened by: a process that works there is asked what is running.
func PrintRuns(ctx context.Context, w io.Writer, store bundle.Store, where string, asJSON bool) error {
	runs, err := list(ctx, store)
	if err != nil {
		return err
	}
	return printRuns(ctx, w, runs, where, asJSON)
}

func printRuns(ctx context.Context, w io.Writer, runs []summary, where string, asJSON bool) error {
	snapshot, err := live.Snapshot(ctx, where)
	if err != nil {
		return err
	}
	mark(runs, snapshot)
	if asJSON {
		return app.PrintJSON(w, runs)
	}
	return writeList(w, runs)
}

// Describe tells about a run. where is what the store was opened by.
func Describe(ctx context.Context, store bundle.Store, where, runID string) (*Description, error) {
	snapshot, err := live.Snapshot(ctx, where)
	if err != nil {
		return nil, err
	}
	rec, err := trials.Load(ctx, store, runID)
	if err != nil {
		return nil, err
	}
	c := newCounter(store, rec)
	d, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	d.attach(snapshot)
	return d, nil
}

// mark says which runs a process is working on.
func mark(runs []summary, live *progress.Snapshot) {
	if live == nil {
		return
	}
	for i := range runs {
		if _, ok := live.Runs[runs[i].RunID]; ok && runs[i].Done < runs[i].Trials {
			runs[i].State = "running"
		}
	}
}
