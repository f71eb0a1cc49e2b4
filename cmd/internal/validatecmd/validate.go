// SPDX-License-Identifier: Apache-2.0

// Package validatecmd is tidemill validate: everything that can be checked about a run
// file without running it.
package validatecmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/internal/producer"
)

type options struct {
	json bool
	vars app.VarFlags
}

// result is what validate prints for a run.
type result struct {
	File       string `json:"file"`
	Name       string `json:"name"`
	PlanDigest string `json:"plan_digest"`
	Tasks      int    `json:"tasks"`
	Trials     int    `json:"trials"`
}

// Command returns the validate command.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check run files, their packs and every task, without running anything",
		Long: `Validate reads run files as run and submit do, with every row of every dataset, and
prints what they would run. What is wrong is named with file, line and entry, and with
what would be right.
` + app.ExitHelp,
		Example: `  tidemill validate examples/quickstart/run.yaml
  tidemill validate --var HUMANEVAL=HumanEval.jsonl.gz examples/humaneval/run-oracle.yaml`,
		Args: app.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error { return o.execute(cmd, files) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	o.vars.Register(cmd)
	return cmd
}

func (o options) execute(cmd *cobra.Command, files []string) error {
	load, err := o.vars.Options()
	if err != nil {
		return err
	}
	runs, err := app.LoadRuns(files, load)
	if err != nil {
		return err
	}
	results := make([]result, 0, len(runs))
	for _, run := range runs {
		d, err := producer.NewDraft(cmd.Context(), run, load, "")
		if err != nil {
			return app.Usage(err)
		}
		results = append(results, result{
			File: run.File, Name: run.Name, PlanDigest: d.Plan.Digest, Tasks: d.Plan.Tasks, Trials: d.Plan.Trials,
		})
		if err := d.Close(); err != nil {
			return err
		}
	}
	if o.json {
		return app.PrintJSON(cmd.OutOrStdout(), results)
	}
	var errs []error
	for _, r := range results {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: ok: %s, %d tasks, %d trials\n", r.File, r.Name, r.Tasks, r.Trials)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
