// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
)

// Flags name a store that is read: --store, or --data by the word that tidemill run has
// for it.
type Flags struct {
	cmd         *cobra.Command
	store, data string
}

// Register adds both flags to a command.
func (f *Flags) Register(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.Flags().StringVar(&f.store, "store", "", Help+" (default that of --data)")
	cmd.Flags().StringVar(&f.data, "data", local.DefaultDir, "data `directory` of tidemill run, which is a store")
}

// Where returns the store that was named. Where both were, it is --store, unless --data was
// said closer by: on the command line, and the store in a variable.
func (f *Flags) Where() string {
	byStore, _ := app.Origin(f.cmd.Flags().Lookup("store"))
	byData, _ := app.Origin(f.cmd.Flags().Lookup("data"))
	if f.store != "" && byStore >= byData {
		return f.store
	}
	return f.data
}
