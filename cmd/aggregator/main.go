// SPDX-License-Identifier: Apache-2.0

// Aggregator builds aggregate.json of runs; it is tidemill aggregate as a program of its
// own.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/aggregatecmd"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/version"
)

func main() {
	os.Exit(app.Main(app.Single(version.String(), func(log *app.LogFlags) *cobra.Command {
		return aggregatecmd.Command("aggregator", log)
	})))
}
