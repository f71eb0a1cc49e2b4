// SPDX-License-Identifier: Apache-2.0

// Package logscmd is tidemill logs: what agent, grader and services of a trial printed,
// while it runs or afterwards.
package logscmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/fleet"
	"github.com/tidemill/tidemill/cmd/internal/live"
	"github.com/tidemill/tidemill/cmd/internal/logview"
	"github.com/tidemill/tidemill/cmd/internal/queues"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/trials"
)

type options struct {
	store         stores.Flags
	queue         queues.Flags
	agent, grader bool
	service       string
	attempt, tail int
	raw           string
	follow        bool
}

// Command returns the logs command.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "logs TRIAL",
		Short: "Show what agent, grader and services of a trial printed",
		Long: `Logs shows the output of a trial's agent and grader, each line with the seconds since the
attempt began and its stream: out, err, or *** for a note of ours. Control characters are
made visible; --raw prints one stream byte by byte as the program wrote it.

Of a trial that runs it shows what there is by now. With --follow it goes on as more is
printed, until the attempt ends. A line is shown when it is complete. What a fleet runs has
logs when its attempt has ended; with --queue it is told which worker has it.

` + trials.Words + `
` + app.ExitHelp("shown", "", "interrupted"),
		Example: `  tidemill logs HumanEval/0#1
  tidemill logs -f 3f2a9c1e
  tidemill logs 3f2a9c1e --grader --tail 20
  tidemill logs 3f2a9c1e --agent --raw stdout >answer.txt`,
		Args: app.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return app.Usage(err)
			}
			return o.execute(cmd, args[0])
		},
	}
	o.store.Register(cmd)
	o.queue.Register(cmd.Flags())
	f := cmd.Flags()
	f.BoolVar(&o.agent, "agent", false, "only what setup and agent printed")
	f.BoolVar(&o.grader, "grader", false, "only what the grader printed")
	f.StringVar(&o.service, "service", "", "the captured log of a service, by its `name`")
	f.IntVar(&o.attempt, "attempt", 0, "which attempt, by its `number` (default the one that runs, else the one that counts, else the last)")
	f.IntVar(&o.tail, "tail", 0, "only the last so many `lines` of each log")
	f.StringVar(&o.raw, "raw", "", "print this `stream` as it was written: stdout or stderr")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on until the attempt ends")
	return cmd
}

func (o options) check() error {
	switch {
	case o.service != "" && (o.agent || o.grader || o.follow):
		return errors.New("--service goes with neither --agent, --grader nor --follow: logs of services are captured at the end")
	case o.raw != "" && o.raw != "stdout" && o.raw != "stderr":
		return fmt.Errorf("--raw %q: want stdout or stderr", o.raw)
	case o.raw != "" && o.agent == o.grader && o.service == "":
		return errors.New("--raw is about one log: add --agent or --grader")
	case o.tail < 0:
		return fmt.Errorf("--tail %d: want 0 or more", o.tail)
	case o.tail > 0 && o.follow:
		return errors.New("--tail and --follow don't go together: what is followed is shown from its start")
	case o.attempt < 0:
		return fmt.Errorf("--attempt %d: want 1 or more", o.attempt)
	}
	return nil
}

// names are the logs that are wanted.
func (o options) names() []string {
	switch {
	case o.agent == o.grader:
		return live.Logs
	case o.agent:
		return live.Logs[:1]
	}
	return live.Logs[1:]
}

func (o options) execute(cmd *cobra.Command, word string) (err error) {
	ctx := cmd.Context()
	store, err := stores.OpenExisting(ctx, o.store.Where())
	if err != nil {
		return err
	}
	defer app.Closing(&err, store.Close)
	t, err := trials.Find(ctx, store, word)
	if err != nil {
		return err
	}
	running, err := live.Find(ctx, o.store.Where(), t.Row.TrialID)
	if err == nil && o.service == "" && cmp.Or(o.attempt, running.Attempt) == running.Attempt {
		err = o.live(ctx, cmd, t)
		if !errors.Is(err, live.ErrNotRunning) { // else it ended just now
			return err
		}
	}
	if err != nil && !errors.Is(err, live.ErrNotRunning) {
		return err
	}
	return o.stored(ctx, cmd, store, t)
}

// stored shows the logs of an attempt that has ended.
func (o options) stored(ctx context.Context, cmd *cobra.Command, store bundle.Store, t trials.Trial) error {
	if err := trials.CheckAttempt(ctx, store, t, o.attempt); err != nil {
		return err
	}
	number := cmp.Or(o.attempt, t.Counted())
	if number == 0 {
		if err := o.elsewhere(ctx, cmd, store, t, number); err != nil {
			return err
		}
		return app.Usage(app.Hint(fmt.Errorf("trial %s has not begun", t.Name()), "tidemill status %s says what runs", t.Run))
	}
	prefix := bundle.Keys{Run: t.Run}.AttemptFiles(t.Row.TaskID, t.Row.TrialIndex, number)
	if o.service != "" {
		return o.ofService(ctx, cmd.OutOrStdout(), store, prefix)
	}
	p := o.printer(cmd.OutOrStdout())
	shown := 0
	for _, name := range o.names() {
		r, _, err := store.Get(ctx, prefix+live.LogFile(name))
		if errors.Is(err, bundle.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		shown++
		if err := errors.Join(o.show(cmd.OutOrStdout(), p, name, r), r.Close()); err != nil {
			return fmt.Errorf("%s: %w", prefix+live.LogFile(name), err)
		}
	}
	if shown == 0 {
		return o.nothing(ctx, cmd, store, t, number, prefix)
	}
	return p.End()
}

// nothing says why an attempt has no logs.
func (o options) nothing(ctx context.Context, cmd *cobra.Command, store bundle.Store, t trials.Trial, number int, prefix string) error {
	for _, err := range store.List(ctx, prefix) {
		if err != nil {
			return err
		}
		// It left a bundle, without these logs.
		return app.Usage(app.Hint(fmt.Errorf("attempt %d of trial %s printed nothing: it ended before that", number, t.Name()),
			"tidemill show %s says how", trials.ShortID(t.Row.TrialID)))
	}
	if err := o.elsewhere(ctx, cmd, store, t, number); err != nil {
		return err
	}
	return app.Usage(app.Hint(fmt.Errorf("attempt %d of trial %s left no files", number, t.Name()),
		"it may run elsewhere, or its process died; tidemill show %s lists its attempts", trials.ShortID(t.Row.TrialID)))
}

// elsewhere says that an attempt runs in the fleet, 0 for whichever; nil where nobody knows
// of one.
func (o options) elsewhere(ctx context.Context, cmd *cobra.Command, store bundle.Store, t trials.Trial, number int) error {
	places, err := fleet.Running(ctx, store, &o.queue, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	at, ok := places[t.Row.TrialID]
	if !ok || number != 0 && number != at.Attempt {
		return nil
	}
	return app.Usage(app.Hint(fmt.Errorf("attempt %d of trial %s runs on worker %s (%s); its files come when it ends", at.Attempt, t.Name(), at.Worker, at.Phase),
		"tidemill show %s says when it has ended", trials.ShortID(t.Row.TrialID)))
}

func (o options) printer(w io.Writer) *logview.Printer {
	return &logview.Printer{W: w, Color: app.Color(w), Titles: len(o.names()) > 1}
}

func (o options) show(w io.Writer, p *logview.Printer, name string, r io.Reader) error {
	switch o.raw {
	case "stdout":
		return logview.CopyRaw(w, r, bundle.LogStdout, o.tail)
	case "stderr":
		return logview.CopyRaw(w, r, bundle.LogStderr, o.tail)
	}
	return logview.Copy(p, name, r, o.tail)
}

// ofService shows the log of a service, which has one stream.
func (o options) ofService(ctx context.Context, w io.Writer, store bundle.Store, prefix string) error {
	path, err := bundle.EscapeName("services/" + o.service + ".log")
	if err != nil {
		return app.Usage(fmt.Errorf("--service %q: %w", o.service, err))
	}
	r, _, err := store.Get(ctx, prefix+path)
	if errors.Is(err, bundle.ErrNotFound) {
		return app.Usage(app.Hint(fmt.Errorf("no log of a service %q was captured", o.service),
			"logs of services are kept when a trial failed, or always with capture.on_success; tidemill show lists the files"))
	}
	if err != nil {
		return err
	}
	return errors.Join(logview.CopyLines(w, r, o.tail, o.raw == ""), r.Close())
}
