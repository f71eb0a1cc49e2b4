// SPDX-License-Identifier: Apache-2.0

// Package lscmd is tidemill ls: the runs of a store, and the trials of a run.
package lscmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/fleet"
	"github.com/tidemill/tidemill/cmd/internal/live"
	"github.com/tidemill/tidemill/cmd/internal/queues"
	"github.com/tidemill/tidemill/cmd/internal/statuscmd"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

type options struct {
	store                     stores.Flags
	queue                     queues.Flags
	failed, unscored, missing bool
	tasks                     []string
	json                      bool
}

// Command returns the ls command.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "ls [RUN]",
		Short: "List runs, or the trials of a run",
		Long: `Ls lists the runs of a store, newest first, or the trials of one of them in the plan's
order: what became of each, why it ended, its score, how long it took, how many attempts
were begun, and what it is called. RUN may be the group of a matrix: then its runs come
one after the other. The flags choose among trials; several of --failed,
--unscored and --missing choose what is any of them. What runs now is told by the process
that works the data directory, or by the queue of a fleet that --queue names.

--json prints runs as a list, and trials as one JSON object a line.
` + app.ExitHelp("listed, also when there is nothing to list", "", ""),
		Example: `  tidemill ls
  tidemill ls nightly-7 --unscored
  tidemill ls nightly-7 --failed --task 'HumanEval/1?'
  tidemill ls nightly-7 --json | jq -r 'select(.latency_s > 60) | .trial_id'`,
		Args: app.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args) },
	}
	o.store.Register(cmd)
	o.queue.Register(cmd.Flags())
	f := cmd.Flags()
	f.BoolVar(&o.failed, "failed", false, "only trials whose score is below the threshold")
	f.BoolVar(&o.unscored, "unscored", false, "only trials that ended without a score")
	f.BoolVar(&o.missing, "missing", false, "only trials that have no result yet")
	f.StringArrayVar(&o.tasks, "task", nil, "only trials of tasks that match this `glob`, where * is any text; may be given again")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (o options) execute(cmd *cobra.Command, args []string) (err error) {
	ctx, where := cmd.Context(), o.store.Where()
	if len(args) == 0 && (o.failed || o.unscored || o.missing || len(o.tasks) > 0) {
		return app.Usage(app.Hint(errNoRun, "tidemill ls RUN --failed; tidemill ls lists the runs"))
	}
	store, err := stores.OpenExisting(ctx, where)
	if err != nil {
		return err
	}
	defer app.Closing(&err, store.Close)
	if len(args) == 0 {
		return statuscmd.PrintRuns(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), store, where, &o.queue, o.json)
	}
	return o.trials(ctx, cmd, store, args[0])
}

func (o options) trials(ctx context.Context, cmd *cobra.Command, store bundle.Store, run string) error {
	recs, err := trials.Resolve(ctx, store, run)
	if err != nil {
		return err
	}
	running, err := o.running(ctx, store, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	for i, rec := range recs {
		if len(recs) > 1 && !o.json {
			if err := heading(cmd.OutOrStdout(), rec, i); err != nil {
				return err
			}
		}
		if err := o.ofRun(ctx, cmd.OutOrStdout(), store, rec, running); err != nil {
			return err
		}
	}
	return nil
}

func (o options) ofRun(ctx context.Context, w io.Writer, store bundle.Store, rec manifest.RunRecord, running map[string]fleet.Place) error {
	p := newPrinter(w, o.json, running)
	for t, err := range trials.Walk(ctx, store, rec, o.filter()) {
		if err != nil {
			return err
		}
		if err := p.print(t); err != nil {
			return err
		}
	}
	return p.end()
}

func (o options) filter() trials.Filter {
	f := trials.Filter{Tasks: o.tasks}
	for state, wanted := range map[trials.State]bool{
		trials.Failed: o.failed, trials.Unscored: o.unscored, trials.Missing: o.missing,
	} {
		if wanted {
			f.States = append(f.States, state)
		}
	}
	return f
}

// running is what a process says that works on the store, by trial, or else the fleet.
func (o options) running(ctx context.Context, store bundle.Store, stderr io.Writer) (map[string]fleet.Place, error) {
	s, err := live.Snapshot(ctx, o.store.Where())
	if err != nil {
		return nil, err
	}
	if s == nil {
		return fleet.Running(ctx, store, &o.queue, stderr)
	}
	out := map[string]fleet.Place{}
	for _, r := range s.Running {
		out[r.TrialID] = fleet.Place{Running: queue.Running(r)}
	}
	return out, nil
}
