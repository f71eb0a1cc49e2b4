// SPDX-License-Identifier: Apache-2.0

// Package prioritycmd is tidemill priority.
package prioritycmd

import (
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/control"
	"github.com/tidemill/tidemill/internal/producer"
)

// Command returns the priority command.
func Command() *cobra.Command {
	var flags control.Flags
	cmd := &cobra.Command{
		Use:   "priority RUN low|normal|high",
		Short: "Change whose turn it is when runs share workers",
		Long: `Priority changes how many turns a run gets at free slots, relative to the other runs of its
pool: 1 for low, 4 for normal, 16 for high. No run starves.

` + control.Where + app.ExitHelp("the run has this priority", "", ""),
		Example: `  tidemill priority nightly-7 high
  tidemill priority --queue nats://127.0.0.1:4222 --store /mnt/evals nightly-7 low`,
		Args: app.Args(cobra.ExactArgs(2)),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{"low", "normal", "high"}, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.Give(cmd, args[0], producer.Order{Kind: bundle.ControlPriority, Priority: args[1]}, nil)
		},
	}
	flags.Register(cmd)
	return cmd
}
