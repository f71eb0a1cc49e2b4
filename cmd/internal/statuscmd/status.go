// SPDX-License-Identifier: Apache-2.0

// Package statuscmd is tidemill status: what the store knows of runs, and what the
// process that works on them says.
package statuscmd

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/internal/dispatch"
)

type options struct {
	data string
	json bool
	log  *app.LogFlags
}

// Command returns the status command.
func Command(log *app.LogFlags) *cobra.Command {
	o := options{log: log}
	cmd := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show how far runs are",
		Long: `Status lists the runs of a store, newest first, or tells about one of them: trials by
outcome, and what is running now. It only reads, and may be used while a run goes on; a
process that works the data directory is asked over its socket.
` + app.ExitHelp,
		Example: `  tidemill status
  tidemill status --data /var/lib/evals nightly-7 --json`,
		Args: app.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args) },
	}
	cmd.Flags().StringVar(&o.data, "data", local.DefaultDir, "data `directory`, or the URL of a store")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (o options) execute(cmd *cobra.Command, args []string) (err error) {
	ctx := cmd.Context()
	store, err := stores.OpenExisting(ctx, o.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	live, err := local.Ask(ctx, o.data)
	if err != nil && !errors.Is(err, local.ErrNoOwner) {
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
		return app.Usage(err)
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
