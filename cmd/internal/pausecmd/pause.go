// SPDX-License-Identifier: Apache-2.0

// Package pausecmd is tidemill pause.
package pausecmd

import (
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/control"
)

// Command returns the pause command.
func Command() *cobra.Command {
	return control.Verb{
		Name: "pause", Kind: bundle.ControlPause,
		Short: "Let no trial of a run begin until it is resumed",
		Long: `Pause holds a run: no trial of it begins. Those that run go on to their end, and what they
make counts.

A run that is paused in a data directory isn't gone on with: tidemill run ends with exit
code 4 and says so, until the run is resumed.
`,
		Done: "each run is paused",
		Example: `  tidemill pause nightly-7
  tidemill pause --queue nats://127.0.0.1:4222 --store /mnt/evals nightly-7 --why 'the model is down'`,
	}.Command()
}
