// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Main runs a command with the process's arguments and returns the exit code.
func Main(cmd *cobra.Command) int {
	ctx, stop := withSignals(context.Background())
	defer stop()
	return run(ctx, cmd, os.Stderr)
}

func run(ctx context.Context, cmd *cobra.Command, stderr io.Writer) int {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(flagError)
	err := cmd.ExecuteContext(ctx)
	code := codeOf(ctx, err)
	if ce, ok := errors.AsType[*CodeError](err); err == nil || ok && ce.Silent {
		return code
	}
	if interrupted(ctx, err) && !errors.Is(err, ErrInterrupted) {
		err = ErrInterrupted // which call noticed it says nothing
	}
	explain(stderr, cmd.Name(), err)
	return code
}

// explain prints an error, each line under the program's name, and what to do next.
func explain(w io.Writer, name string, err error) {
	name += ":"
	if Color(w) {
		name = "\x1b[31m" + name + "\x1b[0m"
	}
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		if line = strings.TrimRight(line, " \t\r"); line != "" {
			fmt.Fprintln(w, name, line)
		}
	}
	for _, hint := range hints(err) {
		fmt.Fprintln(w, name, "hint:", hint)
	}
}

// hints returns all hints in an error's tree, the outermost first, each once.
func hints(err error) []string {
	var out []string
	var visit func(error)
	visit = func(err error) {
		if h, ok := err.(hinted); ok && !slices.Contains(out, h.hint) {
			out = append(out, h.hint)
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			visit(e.Unwrap())
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				visit(inner)
			}
		}
	}
	visit(err)
	return out
}
