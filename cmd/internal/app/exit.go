// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	ExitOK          = 0 // every trial scored
	ExitFailure     = 1 // our failure
	ExitUsage       = 2 // bad input or usage
	ExitUnscored    = 3 // finished, with unscored trials
	ExitInterrupted = 4 // interrupted; give the same command again to go on
)

// ExitHelp is the block of a command's help that explains its exit codes.
const ExitHelp = `
Exit status:
  0  every trial scored
  1  a failure of tidemill or of what it stands on
  2  bad input or usage
  3  finished, with unscored trials
  4  interrupted; give the same command again to go on`

// CodeError carries an exit code. Silent ones were explained already.
type CodeError struct {
	Code   int
	Err    error
	Silent bool
}

func (e *CodeError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *CodeError) Unwrap() error { return e.Err }

// Usage marks an error as bad input.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &CodeError{Code: ExitUsage, Err: err}
}

// hinted adds the next step to an error.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// Hint adds what to do next to an error.
func Hint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return hinted{err, hint}
}

// Main runs a command with the process's arguments and returns the exit code.
func Main(cmd *cobra.Command) int {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return Usage(Hint(err, fmt.Sprintf("see %s --help", c.CommandPath())))
	})
	ctx, stop := withSignals(context.Background())
	defer stop()
	err := cmd.ExecuteContext(ctx)
	return explain(os.Stderr, cmd.Name(), err)
}

// explain prints an error and returns its code.
func explain(w io.Writer, name string, err error) int {
	if err == nil {
		return ExitOK
	}
	code := ExitFailure
	ce, coded := errors.AsType[*CodeError](err)
	switch {
	case coded:
		code = ce.Code
	case strings.HasPrefix(err.Error(), "unknown command"), strings.HasPrefix(err.Error(), "unknown help topic"):
		code = ExitUsage
		err = Hint(err, "see "+name+" --help")
	}
	if coded && ce.Silent {
		return code
	}
	fmt.Fprintf(w, "%s: %v\n", name, err)
	if h, ok := errors.AsType[hinted](err); ok {
		fmt.Fprintf(w, "%s: %s\n", strings.Repeat(" ", len(name)), h.hint)
	}
	return code
}

// Args turns cobra's argument errors into usage errors.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Usage(Hint(err, fmt.Sprintf("see %s --help", cmd.CommandPath())))
		}
		return nil
	}
}
