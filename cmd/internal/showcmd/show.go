// SPDX-License-Identifier: Apache-2.0

// Package showcmd is tidemill show: all that is known of one trial, or of one run.
package showcmd

import (
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/queues"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/trials"
)

type options struct {
	store   stores.Flags
	queue   queues.Flags
	attempt int
	json    bool
}

// Command returns the show command.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "show TRIAL|RUN",
		Short: "Show all that is known of a trial, or describe a run",
		Long: `Show tells how a trial ended, how it was graded, what it took, which attempts were made
and how they ended, which files the one that counts left, and where they are. Of a run it
tells what it was made from, and how far it is. What runs now is told by the process that
works the data directory, or by the queue of a fleet that --queue names.

` + trials.Words + `
` + app.ExitHelp("shown", "", ""),
		Example: `  tidemill show HumanEval/0#1
  tidemill show 3f2a9c1e
  tidemill show nightly-7
  tidemill show nightly-7/HumanEval/0#1 --attempt 2 --json`,
		Args: app.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args[0]) },
	}
	o.store.Register(cmd)
	o.queue.Register(cmd.Flags())
	cmd.Flags().IntVar(&o.attempt, "attempt", 0, "whose files to list, by its `number` (default the one that counts, else the last)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (o options) execute(cmd *cobra.Command, word string) (err error) {
	ctx := cmd.Context()
	store, err := stores.OpenExisting(ctx, o.store.Where())
	if err != nil {
		return err
	}
	defer app.Closing(&err, store.Close)
	rec, err := trials.ExistingRun(ctx, store, word)
	if err != nil {
		return err
	}
	if rec != nil {
		return o.run(ctx, cmd, store, *rec)
	}
	t, err := trials.Find(ctx, store, word)
	if err != nil {
		return trials.OnlyGroup(ctx, store, word, "show", err)
	}
	d, err := o.gather(ctx, store, t, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if o.json {
		return app.PrintJSON(cmd.OutOrStdout(), d)
	}
	return d.write(cmd.OutOrStdout())
}
