// SPDX-License-Identifier: Apache-2.0

// Package runcmd is tidemill run: producer, workers and aggregator in one process, on
// an embedded queue and a store in a data directory.
package runcmd

import (
	"errors"
	"fmt"
	"net"
	goruntime "runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/aggregatecmd"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/cmd/internal/stores"
)

// options are the command's flags.
type options struct {
	data     string
	runID    string
	slots    int
	drain    time.Duration
	listen   string
	maxTasks int
	json     bool
	vars     app.VarFlags
	sweep    runtimes.SweepFlags
	other    stores.Elsewhere
	log      *app.LogFlags
}

// Command returns the run command.
func Command(log *app.LogFlags) *cobra.Command {
	o := options{log: log}
	cmd := &cobra.Command{
		Use:   "run FILE...",
		Short: "Run evals on this machine: everything in one process",
		Long: `Run reads run files, runs every trial on this machine, and prints what came out.

Nothing else needs to be installed or started. Results, the queue and sandboxes live in
one data directory, which one process owns at a time. After an interruption or a crash,
give the same command again: the newest unfinished run with the same plan goes on, and
trials that are done stay done. Where run file or packs were changed a new run begins, and
the one that stays unfinished is named, with how to go on with it or to cancel it.

A table of tasks and the overall line go to stdout; progress goes to stderr, as a bar on
a terminal and as a JSON line for each finished trial elsewhere.

Ctrl-C or SIGTERM stops it: no new trial begins, and running ones may go on for the drain
timeout. A second one ends them at once.
` + app.ExitHelp("every trial scored", "finished, with unscored trials", "interrupted; give the same command again to go on"),
		Example: `  tidemill run examples/quickstart/run.yaml
  tidemill run --data /var/lib/evals --slots 8 nightly.yaml
  tidemill run --var MODEL=some-model --run-id nightly-7 nightly.yaml
  tidemill run --json nightly.yaml 2>progress.jsonl | jq .success_rate`,
		Args: app.Files("run file"),
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := o.check(); err != nil {
				return app.Usage(err)
			}
			return o.execute(cmd, files)
		},
	}
	cmd.Flags().StringVar(&o.runID, "run-id", "", "run `id` to use or to go on with; runs of a matrix add -1, -2, … (default <name>-<UTC time>)")
	o.register(cmd)
	return cmd
}

// register adds the flags that every command has which works a data directory.
func (o *options) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.data, "data", local.DefaultDir, "data `directory`: results, queue and sandboxes")
	f.IntVar(&o.slots, "slots", goruntime.NumCPU(), "how many trials run at once; the default is the number of CPUs")
	f.DurationVar(&o.drain, "drain-timeout", 10*time.Second, "how long running trials may go on after the first Ctrl-C; the second ends them at once")
	f.StringVar(&o.listen, "listen", "", "`host:port` where the embedded queue also listens, without a password, for workers and clients of your own; port 0 takes a free one (default no port)")
	f.IntVar(&o.maxTasks, "max-tasks", 20, aggregatecmd.MaxTasksHelp)
	f.BoolVar(&o.json, "json", false, "print aggregate.json instead of a table, one for each run")
	o.sweep.Register(f)
	o.other.Register(cmd)
	o.vars.Register(cmd)
}

func (o options) check() error {
	if o.slots < 1 || o.slots > app.MaxSlots {
		return fmt.Errorf("--slots %d: want 1 to %d", o.slots, app.MaxSlots)
	}
	if o.drain < 0 {
		return fmt.Errorf("--drain-timeout %s: want 0s or more", o.drain)
	}
	if o.data == "" {
		return errors.New("--data: want a directory")
	}
	if _, _, err := net.SplitHostPort(o.listen); o.listen != "" && err != nil {
		return fmt.Errorf("--listen %q: want host:port, such as 127.0.0.1:4222", o.listen)
	}
	return o.sweep.Check()
}
