// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/local"
)

// Flags name a store that is read: --store, or --data by the word that tidemill run has
// for it.
type Flags struct{ store, data string }

// Register adds both flags to a command.
func (f *Flags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.store, "store", "", Help+" (default that of --data)")
	cmd.Flags().StringVar(&f.data, "data", local.DefaultDir, "data `directory` of tidemill run, which is a store")
}

// Where returns the store that was named.
func (f *Flags) Where() string { return cmp.Or(f.store, f.data) }
