// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"

	"github.com/spf13/cobra"
)

// ExitHelp is the block of a command's help that explains its exit codes. ok says what 0
// means; unscored and interrupted what 3 and 4 do, "" where the command never ends so.
func ExitHelp(ok, unscored, interrupted string) string {
	var b strings.Builder
	b.WriteString("\nExit status:\n  0  " + ok + "\n")
	b.WriteString("  1  a failure of tidemill or of what it stands on\n")
	b.WriteString("  2  bad input or usage")
	if unscored != "" {
		b.WriteString("\n  3  " + unscored)
	}
	if interrupted != "" {
		b.WriteString("\n  4  " + interrupted)
	}
	return b.String()
}

// helpCommand is cobra's, but for a topic that doesn't exist being an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Example: `  tidemill help
  tidemill help run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			found.InitDefaultHelpFlag()
			found.InitDefaultVersionFlag()
			return found.Help()
		},
	}
}
