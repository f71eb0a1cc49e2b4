// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// regradeOptions are the flags of the regrade command.
type regradeOptions struct {
	options
	tasks, trials         []string
	packs                 []string
	failed, unscored, all bool
}

// RegradeCommand returns the regrade command. It is a run without agents, and works like
// one.
func RegradeCommand(log *app.LogFlags) *cobra.Command {
	o := &regradeOptions{options: options{log: log}}
	cmd := &cobra.Command{
		Use:   "regrade RUN",
		Short: "Grade what agents left once more, without running them",
		Long: `Regrade runs the graders of a run again, over what was collected from each trial. No agent
runs, and no tokens are spent. Each trial gets a new epoch with the new verdict; the
earlier ones are kept, and so are the agent's cost, times and trajectory.

With --pack the corrected version of the run's pack grades. Only what the grader sees may
differ in it: its tests, its command, fields of rows that the agent never saw. Without
--pack the same grader judges again.

A pack has to say that what is collected is enough, with regrade: {from: artifacts} in its
pack.yaml. Trials that left nothing to grade, or not all of it, are left out, and why is
said.

Without --failed or --unscored it is for every selected trial, whatever its outcome. After
an interruption or a crash, give the same command again: it goes on with what is open.

It works in a data directory, on this machine. A store that TIDEMILL_STORE names is
refused, unless --data names the directory.
` + app.ExitHelp("every trial of the run is scored", "finished, and the run has trials without a score", "interrupted; give the same command again to go on"),
		Example: `  tidemill regrade nightly-7 --pack ./packs/corrected
  tidemill regrade nightly-7 --failed --task 'HumanEval/*'
  tidemill regrade nightly-7 --trial 10e6394858246a5d --trial roman#2`,
		Args: app.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return app.Usage(err)
			}
			return o.regrade(cmd, args[0])
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.tasks, "task", nil, "`GLOB` over task ids; may be given again")
	f.StringArrayVar(&o.trials, "trial", nil, "`TRIAL`: its id, the beginning of that, or TASK#INDEX; may be given again")
	f.BoolVar(&o.failed, "failed", false, "only trials that are scored and not passed")
	f.BoolVar(&o.unscored, "unscored", false, "only trials that ended without a score")
	f.BoolVar(&o.all, "all", false, "trials of any outcome, as without any of these")
	f.StringArrayVar(&o.packs, "pack", nil, "`DIR` of a corrected pack, which grades in place of the run's pack of that name; may be given again")
	o.register(cmd)
	return cmd
}

func (o *regradeOptions) check() error {
	given := 0
	for _, set := range []bool{o.failed, o.unscored, o.all} {
		if set {
			given++
		}
	}
	if given > 1 {
		return errors.New("--failed, --unscored and --all exclude each other; give one of them, or none for all")
	}
	return o.options.check()
}

func (o *regradeOptions) selection() producer.Selection {
	s := producer.Selection{Tasks: o.tasks, Trials: o.trials}
	switch {
	case o.failed:
		s.Which = producer.Failed
	case o.unscored:
		s.Which = producer.Unscored
	}
	return s
}

// regrade does it all, in the order in which a run does.
func (o *regradeOptions) regrade(cmd *cobra.Command, runID string) (err error) {
	ctx := cmd.Context()
	if err := o.other.Refuse("regrade", o.data); err != nil {
		return err
	}
	s, err := o.session(cmd)
	if err != nil {
		return err
	}
	load, err := o.vars.Options()
	if err != nil {
		return err
	}
	rec, err := o.find(ctx, runID)
	if err != nil {
		return err
	}
	packs, err := o.openPacks(&rec.Run, load)
	if err != nil {
		return err
	}
	defer app.Closing(&err, s.close)
	if err := s.open(ctx, "tidemill regrade"); err != nil {
		return err
	}
	if err := s.openRuntime(&rec.Run, runID); err != nil {
		return err
	}
	if err := runtimes.Admit(ctx, s.runtimes, &rec.Run, s.identity.StoreUUID); err != nil {
		return fmt.Errorf("run %s: %w", runID, err)
	}
	s.submit = func(ctx context.Context) error { return s.putBack(ctx, rec, packs, o.selection()) }
	return s.conclude(ctx)
}

// find reads the run before anything is locked or made.
func (o *regradeOptions) find(ctx context.Context, runID string) (rec manifest.RunRecord, err error) {
	store, err := stores.OpenExisting(ctx, o.data)
	if err != nil {
		return rec, err
	}
	defer app.Closing(&err, store.Close)
	rec, err = dispatch.LoadRun(ctx, store, runID)
	if _, ok := errors.AsType[*dispatch.UnknownRunError](err); ok {
		return rec, app.Usage(app.Hint(err, "tidemill status lists the runs of a store"))
	}
	for i, word := range o.trials {
		if _, _, ok := trials.SplitName(word); !ok || err != nil {
			continue // an id, or a part of one
		}
		var t trials.Trial
		if t, err = trials.Find(ctx, store, runID+"/"+word); err == nil {
			o.trials[i] = t.Row.TrialID
		}
	}
	return rec, err
}

func (o *regradeOptions) openPacks(run *manifest.Run, load manifest.LoadOptions) ([]*manifest.Pack, error) {
	var packs []*manifest.Pack
	var errs []error
	for _, dir := range o.packs {
		p, err := manifest.OpenPack(dir, run.PackOptions(load))
		errs = append(errs, err)
		packs = append(packs, p)
	}
	return packs, app.Usage(errors.Join(errs...))
}

// putBack puts the selected trials back and tells of them.
func (s *session) putBack(ctx context.Context, rec manifest.RunRecord, packs []*manifest.Pack, selected producer.Selection) error {
	p := producer.Producer{
		Store: s.store, StoreUUID: s.identity.StoreUUID, Queue: s.queue, Log: s.log, Version: version.String(), Pool: queue.DefaultPool,
	}
	now, err := dispatch.Control(ctx, s.store, rec.RunID)
	if err != nil {
		return err
	}
	if now.Paused != nil {
		return s.refused(&producer.PausedError{RunID: rec.RunID, Control: *now.Paused})
	}
	re, err := p.Regrade(ctx, rec, producer.Regrade{
		Select: selected, By: app.Whoami(), Packs: packs, TempDir: s.dir.Temp(),
		OnDecided: func(re producer.Reopened) { s.tracker.Plan(rec.RunID, re.Trials, 0) },
	})
	if refused, ok := errors.AsType[*producer.RefusedError](err); ok {
		if refused.Fix != "" {
			return app.Usage(app.Hint(err, "%s", refused.Fix))
		}
		return app.Usage(err)
	}
	if _, ok := errors.AsType[*producer.NothingSelectedError](err); ok {
		return app.Usage(err)
	}
	if _, ok := errors.AsType[manifest.Problems](err); ok {
		return app.Usage(err)
	}
	if err != nil {
		return err
	}
	s.runs = append(s.runs, rec)
	s.works.add(rec)
	s.reporter.Submitted(progress.Run{RunID: rec.RunID, Group: rec.Group, Continued: re.Continued, Tasks: re.Tasks, Trials: re.Trials})
	if n := re.TakenOver[bundle.ControlRetry]; n > 0 {
		s.log.Warn().Str("run_id", rec.RunID).Int("trials", n).Msg("trials that retry had put back are graded again instead; their agents don't run again")
	}
	if n := re.TakenOver[bundle.ControlRegrade]; n > 0 {
		s.log.Warn().Str("run_id", rec.RunID).Int("trials", n).Msg("open trials of an earlier regrade are taken over")
	}
	if len(re.LeftOut) > 0 {
		s.log.Warn().Str("run_id", rec.RunID).Str("why", producer.Reasons(re.LeftOut)).Msg("selected trials that are not graded again")
	}
	return nil
}
