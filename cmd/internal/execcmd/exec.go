// SPDX-License-Identifier: Apache-2.0

// Package execcmd is tidemill exec: a command of your own in the sandbox of a trial that
// runs, or that was kept.
package execcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/kept"
	"github.com/tidemill/tidemill/cmd/internal/live"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/runtime"
)

type options struct {
	store        stores.Flags
	dir, service string
}

// exitNotStarted is what shells end with where there is no such program.
const exitNotStarted = 127

// Command returns the exec command.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "exec TRIAL -- COMMAND...",
		Short: "Run a command in the sandbox of a trial that runs, or was kept",
		Long: `Exec runs a command in a trial's sandbox, with your stdin, stdout and stderr, and ends with
its exit code. There is no shell and no terminal in between: for a shell, run one.

In a trial that runs the command has the agent's user and environment, but not its
secrets, and it is killed when the sandbox goes. What it does there is part of the trial:
the outcome is flagged entered_by_hand. A sandbox that was kept, by tidemill debug --keep,
stays as the command left it; one command at a time can be in it.

` + trials.Words + `
` + app.ExitHelp("the command ended with 0; any other code of its own is passed on", "", "interrupted; the command was killed") + `
  127  the command could not be started`,
		Example: `  tidemill exec HumanEval/0#1 -- ls -l
  tidemill exec 3f2a9c1e -- sh -c 'tail -n 5 *.log'
  tidemill exec --data tidemill-debug 3f2a9c1e -- sh`,
		Args: app.Args(func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 || cmd.ArgsLenAtDash() != 1 {
				return errors.New("want a trial, two dashes and a command, as in exec TRIAL -- ls -l")
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args[0], args[1:]) },
	}
	o.store.Register(cmd)
	cmd.Flags().StringVar(&o.dir, "dir", "", "working `directory` of the command, relative to the workdir or absolute (default the workdir)")
	cmd.Flags().StringVar(&o.service, "service", "", "`name` of the service to run it in (default where the agent runs)")
	return cmd
}

func (o options) execute(cmd *cobra.Command, word string, argv []string) (err error) {
	ctx, where := cmd.Context(), o.store.Where()
	store, err := stores.OpenExisting(ctx, where)
	if err != nil {
		return err
	}
	defer app.Closing(&err, store.Close)
	t, err := trials.Find(ctx, store, word)
	if err != nil {
		return err
	}
	spec := live.Spec{Argv: argv, Dir: o.dir, Service: o.service}
	exit, err := live.Exec(ctx, where, t.Row.TrialID, spec, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	if errors.Is(err, live.ErrNotRunning) {
		exit, err = o.inKept(ctx, cmd, store, t, spec)
	}
	return result(exit, err)
}

// inKept runs the command in a kept sandbox.
func (o options) inKept(ctx context.Context, cmd *cobra.Command, store bundle.Store, t trials.Trial, spec live.Spec) (_ runtime.Exit, err error) {
	list, err := kept.Open(ctx, store, o.store.Where())
	if err != nil {
		return runtime.Exit{}, err
	}
	defer app.Closing(&err, list.Close)
	i := slices.IndexFunc(list.Sandboxes, func(s kept.Sandbox) bool { return s.TrialID == t.Row.TrialID })
	if i < 0 {
		return runtime.Exit{}, app.Usage(app.Hint(fmt.Errorf("trial %s/%s isn't running, and its sandbox was not kept", t.Run, t.Name()),
			"tidemill debug --keep FILE TASK runs a trial and keeps its sandbox"))
	}
	return list.Exec(ctx, list.Sandboxes[i], runtime.Command{
		Argv: spec.Argv, Dir: spec.Dir, Service: spec.Service,
		Stdin: cmd.InOrStdin(), Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(),
	})
}

// result passes the command's exit code on.
func result(exit runtime.Exit, err error) error {
	notStarted := false
	if e, ok := errors.AsType[*live.StreamError](err); ok {
		notStarted = e.NotStarted
		if e.Gone {
			err = app.Hint(err, "the trial ended, and its sandbox with it")
		}
	}
	if _, ok := errors.AsType[*runtime.StartError](err); ok || notStarted {
		return &app.CodeError{Code: exitNotStarted, Err: app.Hint(err, "only what is in the sandbox's PATH can be run by its name")}
	}
	if _, ok := errors.AsType[*runtime.ConflictError](err); ok {
		return app.Hint(err, "somebody is in the sandbox; try again when they have left")
	}
	if err != nil {
		return err
	}
	return app.Exit(exit.Code)
}
