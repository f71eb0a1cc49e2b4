// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemill/tidemill/cmd/internal/debugcmd"
	"github.com/tidemill/tidemill/cmd/internal/prioritycmd"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
)

// arguments is what the arguments of commands are.
var arguments = map[string]cobra.CompletionFunc{
	"run":       files,
	"submit":    files,
	"validate":  files,
	"status":    first(runs),
	"ls":        first(runs),
	"aggregate": runs,
	"regrade":   first(runs),
	"pause":     runs,
	"resume":    runs,
	"cancel":    runs,
	"retry":     first(runs),
	"limits":    runs,
	"priority":  priorityArgs,
	"show":      first(runsAndTrials),
	"logs":      first(trialNames),
	"exec":      execArgs,
	"debug":     debugArgs,
}

// flags is what the values of flags are, by name in all commands.
var flags = map[string]cobra.CompletionFunc{
	"log-level":  words("debug", "info", "warn", "error"),
	"log-format": words("auto", "text", "json"),
	"raw":        words("stdout", "stderr"),
	"runtimes":   words(runtimes.Types()...),
	"runtime":    words(runtimes.Types()...),
	"task":       taskIDs,
	"trial":      trialNames,
	"pack":       directories,
	"data":       directories,
	"store":      directories,
	"work-dir":   directories,
	"config":     files,
}

// Install tells the shells' question what the arguments and flags of a program are.
func Install(root *cobra.Command) {
	for _, cmd := range append(slices.Clone(root.Commands()), root) {
		if f, ok := arguments[cmd.Name()]; ok && cmd.HasParent() {
			cmd.ValidArgsFunction = f
		}
		install := func(f *pflag.Flag) {
			complete, ok := flags[f.Name]
			if cmd.Name() == "debug" && f.Name == "agent" {
				complete, ok = words(debugcmd.Agents...), true
			}
			if !ok && f.Value.Type() != "bool" {
				complete, ok = nothing, true
			}
			if ok {
				_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // the flag is there, and has none yet
			}
		}
		cmd.LocalNonPersistentFlags().VisitAll(install)
		cmd.PersistentFlags().VisitAll(install)
	}
}

// priorityArgs are a run or more, and behind them a priority.
func priorityArgs(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	list, how := runs(cmd, args, typed)
	if len(args) == 0 {
		return list, how
	}
	return append(slices.Clone(prioritycmd.Priorities), list...), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func words(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

func nothing(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func files(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

func directories(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// first completes the first argument only.
func first(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nothing(cmd, args, typed)
		}
		return f(cmd, args, typed)
	}
}
