// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// agentEnd is how the agent's phase ended, before grading.
type agentEnd struct {
	timedOut  bool
	exhausted string
	reason    string // its own word
	detail    string
}

// next begins another step: how the trial ended is how its last step did, but that the
// agent ran out of something in any.
func (e *agentEnd) next() {
	e.reason = ""
	if !e.timedOut && e.exhausted == "" {
		e.detail = ""
	}
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
	log, f := a.log(PhaseAgent, &a.agentLog, agentLogFile)
	if f != nil {
		return f
	}
	start := time.Now()
	defer func() { addSince(&a.metrics.AgentSpanDurationS, start) }()
	if program == nil {
		return nil
	}
	a.agent.next()
	before := log.bytes()
	exit, err := a.exec(ctx, log, runtime.Agent, *program, env, a.agentTimeout(*a.step))
	a.metrics.AgentOutputBytes += log.bytes() - before
	if err != nil {
		return a.trouble(ctx, PhaseAgent, err, SetupFailed)
	}
	a.metrics.AgentExitCode, a.metrics.AgentSignal = &exit.Code, exit.Signal
	if !exit.OK() || exit.Exhausted != "" {
		a.agent.detail = "agent " + describe(exit)
	}
	a.agent.timedOut = a.agent.timedOut || exit.TimedOut
	a.agent.exhausted = cmp.Or(exit.Exhausted, a.agent.exhausted)
	if exit.Exhausted != "" && a.lost(ctx) {
		a.dead = true // it brought its own box down: that is its result
		return nil
	}
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
		a.solved = true
		if err := a.bring(ctx, runtime.Solution, *a.step.Oracle, a.agentUser(*a.step.Oracle)); err != nil {
			return nil, nil, a.trouble(ctx, PhaseAgent, err, SetupFailed)
		}
		return a.step.Oracle, a.oracleEnv(), nil
	default:
		return &manifest.Program{Command: agent.Command}, a.agentEnv(), nil
	}
}

// agentUser is who a program of the agent's phase runs as.
func (a *attempt) agentUser(p manifest.Program) string {
	return cmp.Or(p.User, a.Task.Users[string(runtime.Agent)])
}

// readStatus reads the agent's own word about how it ended.
func (a *attempt) readStatus(ctx context.Context) *failure {
	data, err := a.readFile(ctx, runtime.AgentLogs, statusFile, maxReport)
	if errors.Is(err, runtime.ErrNotExist) {
		return nil
	}
	if err != nil && (ctx.Err() != nil || errors.Is(err, runtime.ErrLost)) {
		return a.trouble(ctx, PhaseAgent, err, InfraFailed)
	}
	var status agentStatus
	if err == nil {
		status, err = parseStatus(data)
	}
	if err != nil {
		a.unreadable(statusFile, err)
		return nil
	}
	a.used["agent/"+statusFile] = true
	if slices.Contains(providerReasons, status.TerminationReason) {
		detail := cmp.Or(status.Detail, "the model provider failed the agent")
		return &failure{ending: ProviderFailed, reason: status.TerminationReason, phase: PhaseAgent, detail: detail}
	}
	a.agent.reason = status.TerminationReason
	a.agent.detail = cmp.Or(status.Detail, a.agent.detail)
	return nil
}
