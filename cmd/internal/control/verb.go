// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/internal/producer"
)

// Verb is a command that gives runs an order which nothing but its reason goes with.
type Verb struct {
	Name, Kind  string
	Short, Long string
	Done        string // what exit code 0 says
	Example     string
}

// Command returns the command.
func (v Verb) Command() *cobra.Command {
	var flags Flags
	var why string
	cmd := &cobra.Command{
		Use:     v.Name + " RUN...",
		Short:   v.Short,
		Long:    v.Long + "\n" + Where + app.ExitHelp(v.Done, "", ""),
		Example: v.Example,
		Args:    app.Files("run"),
		RunE: func(cmd *cobra.Command, runs []string) error {
			return flags.Give(cmd, runs, producer.Order{Kind: v.Kind, Detail: why}, nil)
		},
	}
	flags.Register(cmd)
	cmd.Flags().StringVar(&why, "why", "", "`TEXT` that says why, for those who look at the run later")
	return cmd
}
