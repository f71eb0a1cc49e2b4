// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
)

// Elsewhere is --store of a command that has no other store than its data directory. It
// is there to be answered: who has named a store for other commands may think that this
// one works on it, too.
type Elsewhere struct {
	cmd   *cobra.Command
	store string
}

// Register adds the flag, which no help shows.
func (e *Elsewhere) Register(cmd *cobra.Command) {
	e.cmd = cmd
	cmd.Flags().StringVar(&e.store, "store", "", Help)
	_ = cmd.Flags().MarkHidden("store") // it is there
}

// Named returns what names another store than a data directory which nobody has named: a
// variable, the line of a config file, the flag itself. A person who names the data
// directory knows where the command works.
func (e *Elsewhere) Named(data string) (app.Rank, string) {
	rank, from := app.Origin(e.cmd.Flags().Lookup("store"))
	if named, _ := app.Origin(e.cmd.Flags().Lookup("data")); named != app.ByDefault || e.store == "" || same(e.store, data) {
		return app.ByDefault, ""
	}
	return rank, from
}

// Refuse refuses a store that isn't the data directory.
func (e *Elsewhere) Refuse(command, data string) error {
	rank, from := e.Named(data)
	how := "unset it"
	switch rank {
	case app.ByDefault:
		return nil
	case app.ByCommandLine, app.ByConfig:
		how = "leave it out"
	}
	return app.Usage(app.Hint(
		fmt.Errorf("tidemill %s works in a data directory, on one machine; %s names another store", command, from),
		"%s, or name the data directory with --data", how))
}
