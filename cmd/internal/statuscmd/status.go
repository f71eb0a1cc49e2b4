// SPDX-License-Identifier: Apache-2.0

// Package statuscmd is tidemill status: what the store knows of runs, and what the
// process that works on them says.
package statuscmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/internal/dispatch"
)

type options struct {
	store stores.Flags
	json  bool
}

// Command returns the status command.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show how far runs are",
		Long: `Status lists the runs of a store, newest first, or tells about one of them: trials by
outcome, and what is running now. It only reads, and may be used while a run goes on; a
process that works the data directory is asked over its socket.
` + app.ExitHelp("told", "", ""),
		Example: `  tidemill status
  tidemill status nightly-7
  tidemill status --data /var/lib/evals --json`,
		Args: app.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args) },
	}
	o.store.Register(cmd)
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (o options) execute(cmd *cobra.Command, args []string) (err error) {
	ctx := cmd.Context()
	store, err := stores.OpenExisting(ctx, o.store.Where())
	if err != nil {
		return err
	}
	defer app.Closing(&err, store.Close)
	live, err := ask(ctx, o.store.Where())
	if err != nil {
		return err
	}
	if len(args) == 0 {
		runs, err := list(ctx, store)
		if err != nil {
			return err
		}
		mark(runs, live)
		if o.json {
			return app.PrintJSON(cmd.OutOrStdout(), runs)
		}
		return writeList(cmd.OutOrStdout(), runs)
	}
	d, err := describe(ctx, store, args[0])
	if _, ok := errors.AsType[*dispatch.UnknownRunError](err); ok {
		return app.Usage(app.Hint(err, "tidemill status lists the runs of a store"))
	}
	if err != nil {
		return err
	}
	if live != nil {
		d.attach(live)
	}
	if o.json {
		return app.PrintJSON(cmd.OutOrStdout(), d)
	}
	return d.write(cmd.OutOrStdout())
}

// ask returns what the process says that works a data directory; nil where none does.
func ask(ctx context.Context, where string) (*progress.Snapshot, error) {
	dir, ok := stores.Directory(where)
	if !ok {
		return nil, nil
	}
	live, err := local.Ask(ctx, dir)
	if errors.Is(err, local.ErrNoOwner) {
		return nil, nil
	}
	return live, err
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
