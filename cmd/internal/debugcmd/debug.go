// SPDX-License-Identifier: Apache-2.0

// Package debugcmd is tidemill debug: one trial, run in the foreground.
package debugcmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/manifest"
)

// DefaultData is a data directory of its own: a trial that is looked at is no part of
// results, and can be run beside a run.
const DefaultData = "tidemill-debug"

type options struct {
	data   string
	agent  string
	keep   bool
	remove bool
	json   bool
	vars   app.VarFlags
	log    *app.LogFlags
}

// Agents are those that can be put in the place of the run file's.
var Agents = []string{manifest.OracleAgent, manifest.NopAgent}

// Command returns the debug command.
func Command(log *app.LogFlags) *cobra.Command {
	o := options{log: log}
	cmd := &cobra.Command{
		Use:   "debug FILE TASK[#INDEX]",
		Short: "Run one trial in the foreground, and keep its sandbox if asked to",
		Long: `Debug runs one trial of a run file, once, and shows what happens: each phase with its
duration, and what agent and grader print as they print it, on stderr; the verdict and
where the bundle is, on stdout. It has a data directory of its own, so that it can be used
beside a run, and leaves the run's results alone.

With --keep the sandbox stays for seven days as the grader left it, without its processes,
and tidemill exec runs commands in it. debug --rm TRIAL removes it, debug --rm all of the
data directory.

Ctrl-C ends the trial; with --keep the sandbox stays as it is then.
` + app.ExitHelp("the trial has a score, or sandboxes were removed", "the trial has no score", "interrupted"),
		Example: `  tidemill debug examples/quickstart/run.yaml roman
  tidemill debug nightly.yaml HumanEval/0#1 --agent oracle
  tidemill debug nightly.yaml HumanEval/0 --keep
  tidemill debug --rm 3f2a9c1e`,
		Args: app.Args(func(_ *cobra.Command, args []string) error {
			switch {
			case o.remove && len(args) > 1:
				return errors.New("--rm takes a trial, or nothing for all that were kept")
			case !o.remove && len(args) != 2:
				return errors.New("want a run file and a task: debug FILE TASK[#INDEX]")
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return app.Usage(err)
			}
			if o.remove {
				return o.removeKept(cmd, args)
			}
			return o.execute(cmd, args[0], args[1])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.data, "data", DefaultData, "data `directory` of debugged trials")
	f.StringVar(&o.agent, "agent", "", "run this in the place of the file's agent: "+strings.Join(Agents, " or "))
	f.BoolVar(&o.keep, "keep", false, "keep the sandbox, to be entered with tidemill exec")
	f.BoolVar(&o.remove, "rm", false, "remove the kept sandbox of a trial, or of all")
	f.BoolVar(&o.json, "json", false, "print the verdict as JSON, as tidemill show --json does of a commit")
	o.vars.Register(cmd)
	return cmd
}

func (o options) check() error {
	switch {
	case o.data == "":
		return errors.New("--data: want a directory")
	case o.agent != "" && !slices.Contains(Agents, o.agent):
		return fmt.Errorf("--agent %q: want %s", o.agent, strings.Join(Agents, " or "))
	case o.remove && (o.keep || o.agent != ""):
		return errors.New("--rm goes with neither --keep nor --agent")
	}
	return nil
}

// narrow makes a run of a run file one of a single task: no repeats that nobody asked
// for, and no second attempt.
func (o options) narrow(run *manifest.Run, t target) {
	run.Select = manifest.Select{Tasks: []string{literal(t.task)}}
	run.Repeats = t.index + 1
	run.Retry.MaxAttempts = 1
	run.Capture.OnSuccess = true
	if o.agent != "" {
		run.Agent = manifest.Agent{Name: o.agent, Timeout: run.Agent.Timeout}
	}
}

// literal is the glob that matches a text only.
func literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}

// target is the trial that is wanted.
type target struct {
	task  string
	index int
}

// targets are what a word can mean: task ids may hold a "#", too.
func targets(word string) []target {
	out := []target{{word, 0}}
	if task, index, ok := trials.SplitName(word); ok {
		out = append(out, target{task, index})
	}
	return out
}
