// SPDX-License-Identifier: Apache-2.0

// Package completion lets shells complete commands, flags, and what a store holds: runs,
// tasks and trials.
package completion

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
)

// shells are those that a script can be made for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// Command returns the completion command.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print a script that makes a shell complete tidemill's commands",
		Long: `Completion prints a script for a shell. With it the shell completes commands, flags and
their values, and asks tidemill for runs, tasks and trials of the store that the command
line names, which takes a second at most.

For the running shell:

  bash        source <(tidemill completion bash)
  zsh         source <(tidemill completion zsh)
  fish        tidemill completion fish | source
  powershell  tidemill completion powershell | Out-String | Invoke-Expression

For every new one, write the script where the shell looks for such scripts: for bash (with
the package bash-completion) ~/.local/share/bash-completion/completions/tidemill, for zsh a
file _tidemill in a directory of $fpath, for fish ~/.config/fish/completions/tidemill.fish.
` + app.ExitHelp("printed", "", ""),
		Example: `  tidemill completion bash
  tidemill completion fish >~/.config/fish/completions/tidemill.fish`,
		ValidArgs: shells,
		Args: app.Args(func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want a shell: %s", strings.Join(shells, ", "))
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			return script(cmd.Root(), args[0], cmd.OutOrStdout())
		},
	}
}

func script(root *cobra.Command, shell string, w io.Writer) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(w, true)
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(w)
	}
	return app.Usage(fmt.Errorf("no script for shell %q; there are %s", shell, strings.Join(shells, ", ")))
}
