// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

func (a *attempt) provision(ctx context.Context) *failure {
	a.begin(PhaseProvision)
	start := time.Now()
	spec := a.spec()
	box, err := a.Environment.Open(ctx, spec)
	if err != nil {
		return a.openFailure(ctx, ProvisionFailed, err)
	}
	a.box = box
	defer func() { addSince(&a.metrics.ProvisioningDurationS, start) }()
	a.opened(spec)
	return a.awaitReady(ctx)
}

// setup brings the input of the step and runs its setup command.
func (a *attempt) setup(ctx context.Context) *failure {
	a.begin(PhaseSetup)
	start := time.Now()
	defer func() { addSince(&a.metrics.SetupDurationS, start) }()
	if a.number > 0 {
		if err := a.clear(ctx); err != nil {
			return a.trouble(ctx, PhaseSetup, err, SetupFailed)
		}
	}
	if f := a.noteStep(); f != nil {
		return f
	}
	if err := a.bringInput(ctx); err != nil {
		return a.trouble(ctx, PhaseSetup, err, SetupFailed)
	}
	if a.step.Setup == nil {
		return nil
	}
	log, f := a.log(PhaseSetup, &a.agentLog, agentLogFile)
	if f != nil {
		return f
	}
	env := a.programEnv(a.step.Setup.Env)
	exit, err := a.exec(ctx, log, runtime.Setup, *a.step.Setup, env, setupTimeout(*a.step))
	if err != nil {
		return a.trouble(ctx, PhaseSetup, err, SetupFailed)
	}
	if !exit.OK() {
		return &failure{ending: SetupFailed, phase: PhaseSetup, detail: "setup command " + describe(exit)}
	}
	return nil
}

// noteStep says in the agent's log, which all steps share, where one begins.
func (a *attempt) noteStep() *failure {
	if len(a.Task.Steps) < 2 {
		return nil
	}
	log, f := a.log(PhaseSetup, &a.agentLog, agentLogFile)
	if f != nil {
		return f
	}
	log.log.Note(a.text("step " + a.stepLabel()))
	return nil
}

// takeAway removes places with what is in them, so that no program finds so much as the
// directory.
func (a *attempt) takeAway(ctx context.Context, places ...runtime.Place) error {
	for _, p := range places {
		if err := a.box.CopyIn(ctx, p, nil, runtime.CopyOptions{Gone: true}); err != nil {
			return fmt.Errorf("place %s: %w", p, err)
		}
	}
	return nil
}

// clear takes away what the step before had and this step's agent may not see, and
// goes back to the setup phase.
func (a *attempt) clear(ctx context.Context) error {
	if err := a.box.SetPhase(ctx, runtime.Setup); err != nil {
		return err
	}
	return a.takeAway(ctx, runtime.Tests, runtime.Solution, runtime.Verdict)
}

// bringTask brings what every program may read of the task, and empties the places in
// which an agent leaves files. What an earlier step left there was collected.
func (a *attempt) bringTask(ctx context.Context) error {
	files := map[string][]byte{instructionFile: []byte(a.step.Instruction)}
	maps.Copy(files, a.step.Input)
	if a.step.AgentRow != nil {
		files[agentRowFile] = a.step.AgentRow
	}
	if err := a.copyFiles(ctx, runtime.Input, runtime.CopyOptions{Fresh: true}, files); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	for _, p := range []runtime.Place{runtime.AgentLogs, runtime.Artifacts} {
		if err := a.box.CopyIn(ctx, p, nil, runtime.CopyOptions{Fresh: true}); err != nil {
			return fmt.Errorf("place %s: %w", p, err)
		}
	}
	return nil
}

func (a *attempt) bringInput(ctx context.Context) error {
	if err := a.bringTask(ctx); err != nil {
		return err
	}
	if a.number == 0 {
		if err := a.copyTree(ctx, a.Task.Files, runtime.Workdir, runtime.CopyOptions{}); err != nil {
			return fmt.Errorf("files of the task: %w", err)
		}
		opts := runtime.CopyOptions{Under: a.AgentFilesName}
		if err := a.copyTree(ctx, a.AgentFiles, runtime.Workdir, opts); err != nil {
			return fmt.Errorf("files of the agent: %w", err)
		}
	}
	if err := a.copyTree(ctx, a.step.Files, runtime.Workdir, runtime.CopyOptions{}); err != nil {
		return fmt.Errorf("files of the step: %w", err)
	}
	return nil
}

// bring makes a place anew with the files of a program and the whole row. The first copy
// empties it, so that it costs no call of its own.
func (a *attempt) bring(ctx context.Context, p runtime.Place, prog manifest.Program, user string) error {
	opts := runtime.CopyOptions{Fresh: true, User: user}
	for _, dir := range []string{prog.Base, prog.Files} {
		if dir == "" {
			continue
		}
		if err := a.copyTree(ctx, dir, p, opts); err != nil {
			return fmt.Errorf("files for %s: %w", p, err)
		}
		opts.Fresh = false
	}
	if a.step.Row != nil {
		if err := a.copyFiles(ctx, p, opts, map[string][]byte{fullRowFile: a.step.Row}); err != nil {
			return fmt.Errorf("row for %s: %w", p, err)
		}
		opts.Fresh = false
	}
	if !opts.Fresh {
		return nil
	}
	if err := a.box.CopyIn(ctx, p, nil, opts); err != nil {
		return fmt.Errorf("place %s: %w", p, err)
	}
	return nil
}

func (a *attempt) teardown(ctx context.Context) error {
	if a.box == nil {
		return nil
	}
	a.begin(PhaseTeardown)
	start := time.Now()
	// A cancelled attempt still has to leave the world clean.
	ctx, cancel := beyond(ctx, a.TeardownTimeout, a.TeardownTimeout)
	defer cancel()
	err := a.leave(ctx)
	addSince(&a.metrics.TeardownDurationS, start)
	if err != nil {
		a.Log.Warn().Err(err).Msg("sandbox could not be removed completely")
		a.flag(FlagTeardown)
	}
	return err
}
