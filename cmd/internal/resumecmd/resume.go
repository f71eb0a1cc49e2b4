// SPDX-License-Identifier: Apache-2.0

// Package resumecmd is tidemill resume.
package resumecmd

import (
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/control"
)

// Command returns the resume command.
func Command() *cobra.Command {
	return control.Verb{
		Name: "resume", Kind: bundle.ControlResume,
		Short: "Go on with a run, and put into the queue what is missing",
		Long: `Resume ends a pause, takes a run up again that was cancelled, and puts into the queue of a
fleet what is in the plan, has no result and isn't there: after the queue was wiped,
nothing else is needed. Trials that wait or run stay as they are, so it may be given at any
time.

What a limit holds is let go by another limit: tidemill limits.
`,
		Done: "each run goes on",
		Example: `  tidemill resume nightly-7
  tidemill resume --queue nats://127.0.0.1:4222 --store /mnt/evals nightly-7`,
	}.Command()
}
