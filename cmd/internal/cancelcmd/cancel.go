// SPDX-License-Identifier: Apache-2.0

// Package cancelcmd is tidemill cancel.
package cancelcmd

import (
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/control"
)

// Command returns the cancel command.
func Command() *cobra.Command {
	return control.Verb{
		Name: "cancel", Kind: bundle.ControlCancel,
		Short: "End runs: what runs is stopped, the rest never begins",
		Long: `Cancel ends a run. Trials that run are stopped within seconds; what they did so far is
kept, and doesn't count. Nothing of the run is enqueued again. Results that are there stay,
and aggregate.json says in ended who ended it, and when.

tidemill resume takes a cancelled run up again.
`,
		Done: "each run is cancelled",
		Example: `  tidemill cancel nightly-7
  tidemill cancel --queue nats://127.0.0.1:4222 --store /mnt/evals nightly-7 --why 'wrong model'`,
	}.Command()
}
