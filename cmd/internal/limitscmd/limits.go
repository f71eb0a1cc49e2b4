// SPDX-License-Identifier: Apache-2.0

// Package limitscmd is tidemill limits.
package limitscmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/control"
	"github.com/tidemill/tidemill/internal/producer"
)

// Command returns the limits command.
func Command() *cobra.Command {
	var flags control.Flags
	var inFlight int
	var starts, budget float64
	var deadline time.Duration
	cmd := &cobra.Command{
		Use:   "limits RUN...",
		Short: "Change the limits of a run while it goes on",
		Long: `Limits sets limits of a run in place of those in its run file; those that aren't given stay
as they are, and 0 is none.

Where more trials run than a lowered --max-in-flight allows, they go on to their end, and
none begins until fewer run.

Another budget lets a run go on that is paused for its budget, and another deadline one
that was stopped for its deadline.

` + control.Where + app.ExitHelp("each run has these limits", "", ""),
		Example: `  tidemill limits nightly-7 --max-budget-usd 80
  tidemill limits nightly-7 --max-in-flight 16 --max-starts-per-second 0.5
  tidemill limits nightly-7 --deadline 12h`,
		Args: app.Files("run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			var l bundle.LimitChanges
			if given("max-in-flight") {
				l.MaxInFlight = &inFlight
			}
			if given("max-starts-per-second") {
				l.MaxStartsPerSecond = &starts
			}
			if given("max-budget-usd") {
				l.MaxBudgetUSD = &budget
			}
			if given("deadline") {
				s := deadline.Seconds()
				l.DeadlineS = &s
			}
			if err := l.Validate(); err != nil {
				return app.Usage(fmt.Errorf("limits: %w", err))
			}
			return flags.Give(cmd, args, producer.Order{Kind: bundle.ControlLimits, Limits: l}, nil)
		},
	}
	flags.Register(cmd)
	f := cmd.Flags()
	f.IntVar(&inFlight, "max-in-flight", 0, "how many of its trials run at once, over all workers")
	f.Float64Var(&starts, "max-starts-per-second", 0, "how many of its trials begin in a second, over all workers")
	f.Float64Var(&budget, "max-budget-usd", 0, "what its agents may spend in all before no trial begins any more, in US dollars")
	f.DurationVar(&deadline, "deadline", 0, "when it is stopped, counted from when the run was made")
	return cmd
}
