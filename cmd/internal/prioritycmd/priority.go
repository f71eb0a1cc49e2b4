// SPDX-License-Identifier: Apache-2.0

// Package prioritycmd is tidemill priority.
package prioritycmd

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/control"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/queue"
)

// Command returns the priority command.
func Command() *cobra.Command {
	var flags control.Flags
	cmd := &cobra.Command{
		Use:   "priority RUN... low|normal|high",
		Short: "Change whose turn it is when runs share workers",
		Long: `Priority changes how many turns a run gets at free slots, relative to the other runs of its
pool: 1 for low, 4 for normal, 16 for high. No run starves.

` + control.Where + app.ExitHelp("each run has this priority", "", ""),
		Example: `  tidemill priority nightly-7 high
  tidemill priority --queue nats://127.0.0.1:4222 --store /mnt/evals nightly-7 low`,
		Args: app.Args(check),
		RunE: func(cmd *cobra.Command, args []string) error {
			runs, priority := args[:len(args)-1], args[len(args)-1]
			return flags.Give(cmd, runs, producer.Order{Kind: bundle.ControlPriority, Priority: priority}, nil)
		},
	}
	flags.Register(cmd)
	return cmd
}

// Priorities are the words for them.
var Priorities = []string{string(queue.Low), string(queue.Normal), string(queue.High)}

// check wants a run and, behind it, a priority, before any run is looked at: a word that is
// none is wrong for every run.
func check(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("no run given")
	case !slices.Contains(Priorities, args[len(args)-1]):
		return fmt.Errorf("priority %.100q: want low, normal or high, as the last argument", args[len(args)-1])
	case len(args) == 1:
		return fmt.Errorf("no run given, only the priority %s", args[0])
	}
	return nil
}
