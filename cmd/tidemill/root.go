// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/aggregatecmd"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/cancelcmd"
	"github.com/tidemill/tidemill/cmd/internal/completion"
	"github.com/tidemill/tidemill/cmd/internal/debugcmd"
	"github.com/tidemill/tidemill/cmd/internal/demandcmd"
	"github.com/tidemill/tidemill/cmd/internal/execcmd"
	"github.com/tidemill/tidemill/cmd/internal/gccmd"
	"github.com/tidemill/tidemill/cmd/internal/limitscmd"
	"github.com/tidemill/tidemill/cmd/internal/logscmd"
	"github.com/tidemill/tidemill/cmd/internal/lscmd"
	"github.com/tidemill/tidemill/cmd/internal/pausecmd"
	"github.com/tidemill/tidemill/cmd/internal/prioritycmd"
	"github.com/tidemill/tidemill/cmd/internal/resumecmd"
	"github.com/tidemill/tidemill/cmd/internal/retrycmd"
	"github.com/tidemill/tidemill/cmd/internal/runcmd"
	"github.com/tidemill/tidemill/cmd/internal/showcmd"
	"github.com/tidemill/tidemill/cmd/internal/statuscmd"
	"github.com/tidemill/tidemill/cmd/internal/submitcmd"
	"github.com/tidemill/tidemill/cmd/internal/validatecmd"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/cmd/internal/workercmd"
)

// root is the whole command line.
func root() *cobra.Command {
	cmd := app.Root("tidemill", "Run large evals of agents, and trust what comes out",
		`Tidemill expands a run file into trials, runs agent and grader of each in a sandbox of its
own, keeps sealed evidence of every attempt, and says what the numbers mean.

On one machine, tidemill run does all of it. On many, submit puts trials into a queue,
workers run them, and aggregate builds the report.`)
	cmd.Version = version.String()
	log := app.RegisterShared(cmd)
	cmd.AddCommand(
		runcmd.Command(log),
		runcmd.RegradeCommand(log),
		submitcmd.Command("submit", log),
		workercmd.Command("worker", log),
		aggregatecmd.Command("aggregate", log),
		statuscmd.Command(),
		demandcmd.Command(log),
		pausecmd.Command(),
		resumecmd.Command(),
		cancelcmd.Command(),
		retrycmd.Command(),
		prioritycmd.Command(),
		limitscmd.Command(),
		lscmd.Command(),
		showcmd.Command(),
		logscmd.Command(),
		debugcmd.Command(log),
		execcmd.Command(),
		gccmd.Command(),
		validatecmd.Command(),
		completion.Command(),
		version.Command(),
	)
	completion.Install(cmd)
	return cmd
}
