// SPDX-License-Identifier: Apache-2.0

// Worker leases trials from a queue and runs them; it is tidemill worker as a program of
// its own.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/cmd/internal/workercmd"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

func main() {
	subprocess.Main()
	os.Exit(app.Main(app.Single(version.String(), func(log *app.LogFlags) *cobra.Command {
		return workercmd.Command("worker", log)
	})))
}
