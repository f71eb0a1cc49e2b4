// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"

	"github.com/spf13/cobra"
)

// flagHelp says where values of flags may come from.
const flagHelp = `Every flag but --run-id can be given as a variable (--drain-timeout is
TIDEMILL_DRAIN_TIMEOUT), and every one in the file of --config, a YAML mapping of flag
names to values; the command line goes before variables, and these before the file.`

// Root returns a command that only holds others.
func Root(use, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Long: long + "\n\n" + flagHelp + "\n" +
			ExitHelp("done; of run and aggregate: every trial scored", "finished, with unscored trials",
				"interrupted; give the same command again to go on"),
		Args:              onlyCommands,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	cmd.SetHelpCommand(helpCommand())
	return cmd
}

// RegisterShared adds the flags that every command has, and makes variables and config
// file count.
func RegisterShared(cmd *cobra.Command) *LogFlags {
	log := &LogFlags{}
	register(cmd, log)
	return log
}

// Single makes a command a program of its own.
func Single(version string, build func(*LogFlags) *cobra.Command) *cobra.Command {
	log := &LogFlags{}
	cmd := build(log)
	register(cmd, log)
	cmd.Long += "\n\n" + flagHelp
	cmd.Example = strings.ReplaceAll(cmd.Example, "tidemill "+cmd.Name(), cmd.Name())
	cmd.Version = version
	return cmd
}

func register(cmd *cobra.Command, log *LogFlags) {
	log.Register(cmd)
	cmd.PersistentFlags().String("config", "", "YAML `file` with values for flags")
	cmd.PersistentPreRunE = FillFlags
}
