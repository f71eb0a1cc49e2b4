// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

func (a *attempt) provision(ctx context.Context) *failure {
	a.begin(PhaseProvision)
	start := time.Now()
	box, err := a.Environment.Open(ctx, a.spec())
	if err != nil {
		return a.openFailure(ctx, ProvisionFailed, err)
	}
	a.box = box
	a.metrics.ProvisioningDurationS = since(start)
	return nil
}

// openFailure is the failure of an attempt that has no sandbox.
func (a *attempt) openFailure(ctx context.Context, ending Ending, err error) *failure {
	if ending, ok := stopped(ctx); ok {
		return &failure{ending: ending, phase: PhaseProvision, detail: context.Cause(ctx).Error()}
	}
	f := &failure{ending: ending, phase: PhaseProvision, detail: err.Error()}
	if pe, ok := errors.AsType[*runtime.ProvisionError](err); ok {
		f.stage, f.permanent = pe.Stage, pe.Permanent
		a.evidence = pe.Evidence
		a.grade.Reasons = a.redact.String(fmt.Sprintf("Provisioning failed at %s: %v", pe.Stage, pe.Err))
	}
	if _, ok := errors.AsType[*runtime.UnsupportedError](err); ok {
		f.permanent = true
	}
	f.capacity = errors.Is(err, runtime.ErrCapacity)
	return f
}

// setup brings the input of the step and runs its setup command.
func (a *attempt) setup(ctx context.Context) *failure {
	a.begin(PhaseSetup)
	start := time.Now()
	defer func() { addSince(&a.metrics.SetupDurationS, start) }()
	if err := a.bringInput(ctx); err != nil {
		return a.trouble(ctx, PhaseSetup, err, SetupFailed)
	}
	if a.step.Setup == nil {
		return nil
	}
	log, f := a.log(&a.agentLog, "logs/agent.log")
	if f != nil {
		return f
	}
	env := a.baseEnv()
	exit, err := a.exec(ctx, log, runtime.Setup, *a.step.Setup, env, cmp.Or(a.step.Setup.Timeout.D(), DefaultSetupTimeout))
	if err != nil {
		return a.trouble(ctx, PhaseSetup, err, SetupFailed)
	}
	if !exit.OK() {
		return &failure{ending: SetupFailed, phase: PhaseSetup, detail: "setup command " + describe(exit)}
	}
	return nil
}

func (a *attempt) bringInput(ctx context.Context) error {
	files := map[string][]byte{instructionFile: []byte(a.step.Instruction)}
	if a.step.AgentRow != nil {
		files[agentRowFile] = a.step.AgentRow
	}
	if err := a.copyFiles(ctx, runtime.Input, runtime.CopyOptions{Fresh: true}, files); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	for _, p := range []runtime.Place{runtime.AgentLogs, runtime.Artifacts} {
		if a.step != &a.Task.Steps[0] {
			break // later steps add to what is there
		}
		if err := a.box.CopyIn(ctx, p, nil, runtime.CopyOptions{Fresh: true}); err != nil {
			return fmt.Errorf("place %s: %w", p, err)
		}
	}
	dirs := []string{a.step.Files}
	if a.step == &a.Task.Steps[0] {
		dirs = []string{a.Task.Files, a.step.Files}
	}
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if err := a.copyTree(ctx, dir, runtime.Workdir, runtime.CopyOptions{}); err != nil {
			return fmt.Errorf("files of the task: %w", err)
		}
	}
	if a.AgentFiles != "" {
		opts := runtime.CopyOptions{Under: a.AgentFilesName}
		if err := a.copyTree(ctx, a.AgentFiles, runtime.Workdir, opts); err != nil {
			return fmt.Errorf("files of the agent: %w", err)
		}
	}
	return nil
}

// runAgent runs the agent's program to its end, or not at all for nop.
func (a *attempt) runAgent(ctx context.Context) *failure {
	a.begin(PhaseAgent)
	if err := a.box.SetPhase(ctx, runtime.Agent); err != nil {
		return a.trouble(ctx, PhaseAgent, err, InfraFailed)
	}
	program, env, f := a.agentProgram(ctx)
	if f != nil {
		return f
	}
	log, f := a.log(&a.agentLog, "logs/agent.log")
	if f != nil {
		return f
	}
	start := time.Now()
	defer func() { addSince(&a.metrics.AgentSpanDurationS, start) }()
	if program == nil {
		return nil
	}
	timeout := cmp.Or(a.Run.Run.Agent.Timeout.D(), a.step.AgentTimeout.D(), DefaultAgentTimeout)
	exit, err := a.exec(ctx, log, runtime.Agent, *program, env, timeout)
	if err != nil {
		return a.trouble(ctx, PhaseAgent, err, SetupFailed)
	}
	a.metrics.AgentExitCode, a.metrics.AgentSignal = &exit.Code, exit.Signal
	if !exit.OK() {
		a.agent.detail = "agent " + describe(exit)
		if exit.Exhausted == "" && errors.Is(a.box.Alive(ctx), runtime.ErrLost) {
			return &failure{ending: SandboxLost, phase: PhaseAgent, detail: "the sandbox died while the agent ran"}
		}
	}
	a.agent.timedOut = a.agent.timedOut || exit.TimedOut
	a.agent.exhausted = cmp.Or(exit.Exhausted, a.agent.exhausted)
	return a.readStatus(ctx)
}

// agentProgram returns what runs as the agent: nothing for nop, the pack's solution
// for oracle.
func (a *attempt) agentProgram(ctx context.Context) (*manifest.Program, map[string]string, *failure) {
	agent := a.Run.Run.Agent
	switch {
	case agent.Name == manifest.NopAgent:
		return nil, nil, nil
	case agent.Name == manifest.OracleAgent && len(agent.Command) == 0:
		if a.step.Oracle == nil {
			return nil, nil, &failure{ending: SetupFailed, phase: PhaseAgent, detail: "the pack has no oracle for this task"}
		}
		if err := a.bring(ctx, runtime.Solution, a.step.Oracle.Files, ""); err != nil {
			return nil, nil, a.trouble(ctx, PhaseAgent, err, SetupFailed)
		}
		return a.step.Oracle, a.oracleEnv(), nil
	default:
		return &manifest.Program{Command: agent.Command}, a.agentEnv(), nil
	}
}

// bring makes a place anew with the files of a phase and the whole row.
func (a *attempt) bring(ctx context.Context, p runtime.Place, dir, user string) error {
	opts := runtime.CopyOptions{Fresh: true, User: user}
	if dir != "" {
		if err := a.copyTree(ctx, dir, p, opts); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		opts.Fresh = false
	}
	files := map[string][]byte{}
	if a.step.Row != nil {
		files[fullRowFile] = a.step.Row
	}
	if err := a.copyFiles(ctx, p, opts, files); err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	return nil
}

// readStatus reads the agent's own word about how it ended.
func (a *attempt) readStatus(ctx context.Context) *failure {
	data, err := a.readFile(ctx, runtime.AgentLogs, statusFile, maxVerdict)
	switch {
	case errors.Is(err, runtime.ErrNotExist):
		return nil
	case errors.Is(err, runtime.ErrLost):
		return a.trouble(ctx, PhaseAgent, err, InfraFailed)
	case err != nil:
		a.flag("status_unreadable")
		return nil
	}
	status, err := parseStatus(data)
	if err != nil {
		a.flag("status_unreadable")
		return nil
	}
	for _, word := range providerReasons {
		if status.TerminationReason == word {
			return &failure{ending: ProviderFailed, reason: word, phase: PhaseAgent, detail: cmp.Or(status.Detail, "the model provider failed the agent")}
		}
	}
	a.agent.reason = status.TerminationReason
	a.agent.detail = cmp.Or(status.Detail, a.agent.detail)
	return nil
}

func (a *attempt) teardown(ctx context.Context) error {
	if a.box == nil {
		return nil
	}
	a.begin(PhaseTeardown)
	start := time.Now()
	// A cancelled attempt still has to leave the world clean.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.TeardownTimeout)
	defer cancel()
	err := a.box.Close(ctx)
	a.metrics.TeardownDurationS = since(start)
	if err != nil {
		a.Log.Warn().Err(err).Msg("sandbox could not be removed completely")
		a.flag("teardown_incomplete")
	}
	return err
}

// spec describes the sandbox of this attempt.
func (a *attempt) spec() runtime.Spec {
	run, task := a.Run.Run, a.Task
	budget := cmp.Or(run.Runtime.Timeout.D(), DefaultProvisionTimeout) + 2*a.TeardownTimeout + time.Hour
	for _, s := range task.Steps {
		budget += cmp.Or(run.Agent.Timeout.D(), s.AgentTimeout.D(), DefaultAgentTimeout) +
			a.gradeTimeout(&s) + DefaultSetupTimeout
	}
	users := map[runtime.Phase]string{}
	for phase, user := range task.Users {
		users[runtime.Phase(phase)] = user
	}
	return runtime.Spec{
		Name: a.Row.TrialID,
		Labels: runtime.Labels{
			Store: a.StoreUUID, Run: a.Run.RunID, Task: a.Row.TaskID, TrialIndex: a.Row.TrialIndex,
			Trial: a.Row.TrialID, Attempt: a.Attempt, Worker: a.Worker, ExpiresAt: time.Now().Add(budget).UTC(),
		},
		Image:        runtime.Image{Ref: cmp.Or(run.Runtime.Image, task.Image)},
		Users:        users,
		Network:      map[runtime.Phase]runtime.Network{runtime.Agent: network(run)},
		Resources:    Resources(run.Runtime.Resources, task.Resources),
		Env:          task.Env,
		ReadyTimeout: cmp.Or(run.Runtime.Timeout.D(), DefaultProvisionTimeout),
	}
}

// Resources translates what run and task ask for; the run goes before the task.
func Resources(run, task manifest.Resources) runtime.Resources {
	r := runtime.Resources{
		CPUs:   cmp.Or(run.CPUs, task.CPUs),
		Memory: int64(cmp.Or(run.Memory, task.Memory)),
		Disk:   int64(cmp.Or(run.Disk, task.Disk)),
		Pids:   cmp.Or(run.Pids, task.Pids),
		Files:  cmp.Or(run.Files, task.Files),
		Shm:    int64(cmp.Or(run.Shm, task.Shm)),
		GPUs:   cmp.Or(run.GPUs, task.GPUs),
	}
	r.GPUTypes = run.GPUTypes
	if len(r.GPUTypes) == 0 {
		r.GPUTypes = task.GPUTypes
	}
	return r
}

// keepsProcesses reports whether the agent's processes go on while the grader works.
func (a *attempt) keepsProcesses() bool {
	return cmp.Or(a.Run.Run.AgentProcesses, a.Task.AgentProcesses, "end") == "keep"
}

// describe says how a program ended.
func describe(e runtime.Exit) string {
	switch {
	case e.TimedOut:
		return "ran out of time"
	case e.Exhausted != "":
		return "used up its " + e.Exhausted
	case e.Signal != "":
		return "was killed by " + e.Signal
	default:
		return fmt.Sprintf("ended with exit code %d", e.Code)
	}
}

// trouble classifies an error of the runtime in a phase. other is what a program that
// can't be started or files that can't be placed mean there.
func (a *attempt) trouble(ctx context.Context, phase string, err error, other Ending) *failure {
	f := &failure{ending: InfraFailed, phase: phase, detail: err.Error()}
	_, start := errors.AsType[*runtime.StartError](err)
	_, path := errors.AsType[*runtime.PathError](err)
	switch ending, stop := stopped(ctx); {
	case stop:
		f.ending, f.detail = ending, context.Cause(ctx).Error()
	case errors.Is(err, runtime.ErrLost):
		f.ending = SandboxLost
	case start || path:
		f.ending = other
	case a.box != nil && errors.Is(a.box.Alive(ctx), runtime.ErrLost):
		f.ending = SandboxLost
	}
	return f
}
