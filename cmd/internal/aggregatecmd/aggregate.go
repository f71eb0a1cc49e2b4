// SPDX-License-Identifier: Apache-2.0

// Package aggregatecmd is tidemill aggregate, and the aggregator.
package aggregatecmd

import (
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/aggregator"
	"github.com/tidemill/tidemill/internal/report"
)

type options struct {
	store    stores.Flags
	json     bool
	maxTasks int
	log      *app.LogFlags
}

// Command returns the aggregate command under a name of its own.
func Command(use string, log *app.LogFlags) *cobra.Command {
	o := options{log: log}
	cmd := &cobra.Command{
		Use:   use + " [RUN...]",
		Short: "Build aggregate.json of runs from their bundles",
		Long: `Aggregate reads the plan and the commits of each run from the store and writes
aggregate.json, per_task_metrics.json, metadata_slices.json and failure_attribution.json
beside them. It can be repeated at any time, also while the run goes on: complete says
whether every planned trial is in it.

It may be asked for one run, or for several; the group of a matrix stands for all its runs,
which are compared at the end. A store that has one run needs no name.
` + app.ExitHelp("every trial of every run scored", "trials without a score, or without a commit so far", ""),
		Example: "  tidemill " + use + ` humaneval-oracle-20261129-120000
  tidemill ` + use + ` --store /mnt/evals --json nightly-7`,
		Args: app.Args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, runs []string) error { return o.execute(cmd, runs) },
	}
	f := cmd.Flags()
	o.store.Register(cmd)
	f.BoolVar(&o.json, "json", false, "print aggregate.json instead of a table")
	f.IntVar(&o.maxTasks, "max-tasks", 20, MaxTasksHelp)
	return cmd
}

func (o options) execute(cmd *cobra.Command, runs []string) (err error) {
	ctx := cmd.Context()
	log, err := o.log.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	store, err := stores.OpenForReports(ctx, o.store.Where())
	if err != nil {
		return err
	}
	defer app.Closing(&err, store.Close)
	code := app.ExitOK
	p := Printer{W: cmd.OutOrStdout(), StoreURL: store.URL(), JSON: o.json, MaxTasks: o.maxTasks}
	recs, err := which(ctx, store, runs)
	if err != nil {
		return err
	}
	for _, rec := range recs {
		agg, err := aggregator.Run(ctx, aggregator.Config{Store: store, RunID: rec.RunID, Log: log, GeneratedBy: version.String()})
		if err != nil {
			return err
		}
		if err := p.Print(agg); err != nil {
			return err
		}
		code = max(code, Code(agg))
	}
	if err := p.Close(); err != nil {
		return err
	}
	return app.Exit(code)
}

// Code is the exit code that an aggregate asks for.
func Code(agg *report.Aggregate) int {
	if agg.Complete && agg.Unscored == 0 {
		return app.ExitOK
	}
	return app.ExitUnscored
}
