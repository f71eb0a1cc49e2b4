// SPDX-License-Identifier: Apache-2.0

// Producer puts the trials of run files into a queue; it is tidemill submit as a program
// of its own.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/submitcmd"
	"github.com/tidemill/tidemill/cmd/internal/version"
)

func main() {
	os.Exit(app.Main(app.Single(version.String(), func(log *app.LogFlags) *cobra.Command {
		return submitcmd.Command("producer", log)
	})))
}
