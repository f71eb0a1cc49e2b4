// SPDX-License-Identifier: Apache-2.0

// Package validatecmd is tidemill validate: everything that can be checked about a run
// file without running it.
package validatecmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
)

type options struct {
	json bool
	vars app.VarFlags
}

// result is what validate prints for a run.
type result struct {
	File string `json:"file"`
	Name string `json:"name"`
	// Matrix has the values of one combination; absent without a matrix.
	Matrix     map[string]string `json:"matrix,omitempty"`
	PlanDigest string            `json:"plan_digest"`
	Tasks      int               `json:"tasks"`
	Trials     int               `json:"trials"`
	// TasksAsk is what tasks ask for themselves; absent when they ask for nothing.
	TasksAsk []producer.Demand `json:"tasks_ask,omitempty"`
	// Warnings are what is odd and keeps nobody from running it.
	Warnings []string `json:"warnings,omitempty"`
}

// Command returns the validate command.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check run files, their packs and every task, without running anything",
		Long: `Validate reads run files as run and submit do, with every row of every dataset, and
prints what they would run, a line for each combination of a matrix. What is wrong is
named with file, line and entry, and with what would be right.

What tasks ask for themselves (images, networks, users), what is odd about them, and
whether this machine could run them is told on stderr and decides nothing.
` + app.ExitHelp("the files are right", "", ""),
		Example: `  tidemill validate examples/quickstart/run.yaml
  tidemill validate --var HUMANEVAL=HumanEval.jsonl.gz examples/humaneval/run-oracle.yaml`,
		Args: app.Files("run file"),
		RunE: func(cmd *cobra.Command, files []string) error { return o.execute(cmd, files) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	o.vars.Register(cmd)
	return cmd
}

func (o options) execute(cmd *cobra.Command, paths []string) error {
	files, load, err := o.vars.LoadRuns(paths...)
	if err != nil {
		return err
	}
	var results []result
	for _, file := range files {
		for _, run := range file.Runs {
			m := here(cmd.Context(), run)
			r, err := check(cmd.Context(), run, load, m)
			if err := errors.Join(err, m.close()); err != nil {
				return err
			}
			results = append(results, r)
			tell(cmd.ErrOrStderr(), r, append(m.notes, m.progs.Missing()...))
		}
	}
	if o.json {
		return app.PrintJSON(cmd.OutOrStdout(), results)
	}
	var errs []error
	for _, r := range results {
		text := fmt.Sprintf("%s: ok: %s, %s, %s", r.File, r.Name, app.Count(r.Tasks, "task"), app.Count(r.Trials, "trial"))
		if len(r.Matrix) > 0 {
			text += ", " + trials.Values(r.Matrix)
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// maxWarnings is how many warnings of a run are told on stderr.
const maxWarnings = 20

// tell says what decides nothing.
func tell(w io.Writer, r result, notes []string) {
	for _, warning := range r.Warnings[:min(len(r.Warnings), maxWarnings)] {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
	if more := len(r.Warnings) - maxWarnings; more > 0 {
		fmt.Fprintf(w, "warning: %s: and %d more warnings; --json has them all\n", r.File, more)
	}
	for _, d := range r.TasksAsk {
		fmt.Fprintf(w, "%s: note: %s: %s\n", r.File, d.What, app.Count(d.Tasks, "task"))
	}
	for _, note := range notes {
		fmt.Fprintf(w, "%s: note: not on this machine: %s\n", r.File, note)
	}
}

// check reads every task of a run, and asks a machine about each.
func check(ctx context.Context, run *manifest.Run, load manifest.LoadOptions, m *machine) (r result, err error) {
	d, err := producer.NewDraft(ctx, run, load, "", m.task)
	if err != nil {
		return r, app.InputError(ctx, err)
	}
	defer app.Closing(&err, d.Close)
	r = result{
		File: run.File, Name: run.Name, Matrix: run.Values(), PlanDigest: d.Plan.Digest, Tasks: d.Plan.Tasks, Trials: d.Plan.Trials,
		TasksAsk: d.Demands,
	}
	for _, w := range d.Warnings {
		r.Warnings = append(r.Warnings, w.Error())
	}
	return r, nil
}
