// SPDX-License-Identifier: Apache-2.0

// Package retrycmd is tidemill retry.
package retrycmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/control"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
)

// Command returns the retry command.
func Command() *cobra.Command {
	var flags control.Flags
	var sel producer.Selection
	var unscored bool
	cmd := &cobra.Command{
		Use:   "retry RUN",
		Short: "Do trials once more, agent and all",
		Long: `Retry puts trials back that are done. Each gets a new epoch, and its agent runs again; what
it did before is kept, and is shown until the new result is there. Trials are chosen by the
failure class of their result, by their task, or one by one; several choices are all to be
met.

Choosing trials by their score and doing them again makes a score that says less. Failures
of infra, provider and grader are not the agent's.

` + control.Where + app.ExitHelp("the trials are put back", "", ""),
		Example: `  tidemill retry nightly-7 --class infra --class provider
  tidemill retry nightly-7 --trial 10e6394858246a5d --trial 'roman#2'
  tidemill retry nightly-7 --task 'HumanEval/*' --unscored`,
		Args: app.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if unscored {
				sel.Which = producer.Unscored
			}
			return flags.Give(cmd, args, producer.Order{Kind: bundle.ControlRetry, Select: sel}, byName)
		},
	}
	flags.Register(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&sel.Classes, "class", nil, "failure `CLASS` of the result: "+strings.Join(producer.Classes, ", ")+"; may be given again")
	f.StringArrayVar(&sel.Tasks, "task", nil, "`GLOB` over task ids; may be given again")
	f.StringArrayVar(&sel.Trials, "trial", nil, "`TRIAL`: its id, the beginning of that, or TASK#INDEX; may be given again")
	f.BoolVar(&unscored, "unscored", false, "only trials that ended without a score")
	return cmd
}

// byName puts ids in the place of TASK#INDEX.
func byName(ctx context.Context, store bundle.Store, rec manifest.RunRecord, o *producer.Order) error {
	ids := make([]string, len(o.Select.Trials))
	for i, word := range o.Select.Trials {
		ids[i] = word
		if _, _, ok := trials.SplitName(word); !ok {
			continue // an id, or a part of one
		}
		t, err := trials.Find(ctx, store, rec.RunID+"/"+word)
		if err != nil {
			return err
		}
		ids[i] = t.Row.TrialID
	}
	o.Select.Trials = ids
	return nil
}
