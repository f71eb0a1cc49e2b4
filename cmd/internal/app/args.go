// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Args turns the errors of a check of arguments into usage errors. Cobra's own checks speak
// of "arg(s)": they are told in the words of the command's use.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err != nil && (strings.Contains(err.Error(), "arg(s)") || strings.HasPrefix(err.Error(), "unknown command ")) {
			err = fmt.Errorf("%s takes %s; got %s", cmd.Name(), takes(cmd.Use), got(args))
		}
		return Usage(Hint(err, "see %s --help", cmd.CommandPath()))
	}
}

// takes says what a command takes by its use, such as "status [RUN]".
func takes(use string) string {
	words := strings.Fields(use)[1:]
	words = slices.DeleteFunc(words, func(w string) bool { return w == "[flags]" })
	if len(words) == 0 {
		return "no arguments"
	}
	if len(words) > 1 {
		return strings.Join(words, " ")
	}
	switch word := words[0]; {
	case strings.HasPrefix(word, "["):
		name, several := strings.CutSuffix(strings.Trim(word, "[]"), "...")
		if several {
			return "any number of " + name
		}
		return "at most one " + name
	case strings.HasSuffix(word, "..."):
		return "one " + strings.TrimSuffix(word, "...") + " or more"
	default:
		return "one " + word
	}
}

func got(args []string) string {
	switch len(args) {
	case 0:
		return "none"
	case 1:
		return fmt.Sprintf("%q", args[0])
	default:
		return strconv.Itoa(len(args))
	}
}

// Files takes one file or more.
func Files(what string) cobra.PositionalArgs {
	return Args(func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("no %s given", what)
		}
		return nil
	})
}

// onlyCommands refuses what is no command, with the nearest one.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			names = append(names, sub.Name())
		}
	}
	err := fmt.Errorf("unknown command %q", name)
	if near := nearest(name, names); near != "" {
		return Usage(Hint(err, "did you mean %s %s? All commands: %s --help", cmd.CommandPath(), near, cmd.CommandPath()))
	}
	return Usage(Hint(err, "see %s --help", cmd.CommandPath()))
}

// flagError explains flags that don't exist or have a bad value.
func flagError(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return Usage(Hint(plainer(err), "see %s --help", cmd.CommandPath()))
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := nearest(unknown.GetSpecifiedName(), names); near != "" && unknown.GetSpecifiedShortnames() == "" {
		return Usage(Hint(err, "did you mean --%s? All flags: %s --help", near, cmd.CommandPath()))
	}
	return Usage(Hint(err, "see %s --help", cmd.CommandPath()))
}

// plainer says what a value should have been instead of which Go function refused it.
func plainer(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	return badValue(bad.GetFlag(), bad.GetValue(), err)
}

// badValue is the error of a flag's value, wherever it came from.
func badValue(f *pflag.Flag, value string, err error) error {
	want := map[string]string{
		"int": "a whole number", "bool": "true or false", "duration": "a duration such as 30s, 10m or 1h30m",
		"size": "a size such as 512MiB or 2GiB, or 0",
	}[f.Value.Type()]
	if want == "" {
		return err
	}
	return fmt.Errorf("--%s %q: want %s", f.Name, value, want)
}

// nearest returns the known word that was probably meant, or "".
func nearest(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if strings.HasPrefix(k, word) && len(word) >= 2 {
			return k
		}
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// MaxSlots bounds --slots: beyond it a slip of the keyboard is likelier than a wish.
const MaxSlots = 4096
