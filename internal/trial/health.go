// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// StageHealthcheck is the stage of provisioning in which a health check fails: of the task,
// or of its first step, before an agent could have broken anything.
const StageHealthcheck = "healthcheck"

// What a health check has that says nothing else.
const (
	defaultHealthTimeout = 30 * time.Second
	defaultHealthRetries = 3
	// leastHealthInterval keeps one without an interval from keeping a machine busy.
	leastHealthInterval = 100 * time.Millisecond
)

// healthTail is how much of a failed check's output is kept, in bytes.
const healthTail = 1 << 10

// health is a health check with its defaults.
type health struct {
	command                              []string
	interval, timeout, start, startEvery time.Duration
	retries                              int
}

func healthOf(h manifest.Healthcheck) health {
	out := health{
		command: h.Command, interval: max(h.Interval.D(), leastHealthInterval),
		timeout: cmp.Or(h.Timeout.D(), defaultHealthTimeout), start: h.StartPeriod.D(), retries: cmp.Or(h.Retries, defaultHealthRetries),
	}
	out.startEvery = max(cmp.Or(h.StartInterval.D(), out.interval), leastHealthInterval)
	return out
}

// longest is how long the check can take at most.
func (h health) longest() time.Duration {
	return h.start + h.startEvery + h.timeout + time.Duration(h.retries)*(h.interval+h.timeout)
}

func healthTimeout(h *manifest.Healthcheck) time.Duration {
	if h == nil {
		return 0
	}
	return healthOf(*h).longest()
}

// await tries a health check until it succeeds, by the rules of [manifest.Healthcheck].
// Why it didn't is in a sentence; a failure is trouble of another kind.
func (a *attempt) await(ctx context.Context, phase string, check *manifest.Healthcheck) (why string, f *failure) {
	if check == nil {
		return "", nil
	}
	h := healthOf(*check)
	began := time.Now()
	for failures := 0; ; {
		starting := time.Since(began) < h.start
		why, err := a.try(ctx, h)
		if err != nil {
			return "", a.trouble(ctx, phase, err, InfraFailed)
		}
		if why == "" {
			return "", nil
		}
		wait := h.interval
		if starting {
			wait = h.startEvery
		} else if failures++; failures >= h.retries {
			return a.unhealthy(phase, failures, why)
		}
		if err := pause(ctx, wait); err != nil {
			return "", a.trouble(ctx, phase, err, InfraFailed)
		}
	}
}

// unhealthy notes in the agent's log what goes into the records too.
func (a *attempt) unhealthy(phase string, failures int, why string) (string, *failure) {
	log, f := a.log(phase, &a.agentLog, agentLogFile)
	if f != nil {
		return "", f
	}
	times := "once"
	if failures > 1 {
		times = fmt.Sprintf("%d times in a row", failures)
	}
	why = fmt.Sprintf("the health check failed %s; the last time it %s", times, why)
	log.log.Note(a.text(why))
	return why, nil
}

// try runs a health check once and says how it failed, "" when it didn't. One that can't be
// started failed.
func (a *attempt) try(ctx context.Context, h health) (why string, err error) {
	env := a.programEnv()
	out := &tailWriter{limit: healthTail}
	clean := a.redact.Writer(out) // before it is cut: half a value would be left
	exit, err := a.box.Exec(ctx, runtime.Command{
		Argv: expandArgv(h.command, env), Env: env, User: a.Task.Users[string(runtime.Setup)],
		Stdout: clean, Stderr: clean, Timeout: h.timeout,
	})
	_ = clean.Close() // what is behind it takes everything
	start, ok := errors.AsType[*runtime.StartError](err)
	switch {
	case ok:
		why = start.Error()
	case err != nil:
		return "", err
	case exit.Code == 0 && !exit.TimedOut && exit.Signal == "":
		return "", nil
	default:
		why = describe(exit)
	}
	if a.lost(ctx) {
		return "", fmt.Errorf("the sandbox died while its health was checked: %w", runtime.ErrLost)
	}
	if said := strings.TrimSpace(out.String()); said != "" {
		why += ": " + said
	}
	return why, nil
}

// pause waits, or returns why ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitReady waits until the sandbox is what the task needs.
func (a *attempt) awaitReady(ctx context.Context) *failure {
	why, f := a.await(ctx, PhaseProvision, a.Task.Healthcheck)
	if f != nil || why == "" {
		return f
	}
	return a.notReady(PhaseProvision, why)
}

// notReady is the failure of a health check that no agent can have broken.
func (a *attempt) notReady(phase, why string) *failure {
	a.grade.Reasons = a.text(fmt.Sprintf("Provisioning failed at %s: %s", StageHealthcheck, why))
	return &failure{ending: ProvisionFailed, phase: phase, stage: StageHealthcheck, detail: why}
}

// awaitStep checks a step's health between its setup and its agent. What fails before the
// first agent is the environment's; later it is what the agent left: then the step scores
// 0 and is the last one.
func (a *attempt) awaitStep(ctx context.Context) *failure {
	if a.step.Healthcheck == nil {
		return nil
	}
	start := time.Now()
	why, f := a.await(ctx, PhaseSetup, a.step.Healthcheck)
	addSince(&a.metrics.SetupDurationS, start)
	switch {
	case f != nil || why == "":
		return f
	case a.number == 0:
		return a.notReady(PhaseSetup, why)
	}
	a.over = true
	a.flag(FlagHealthcheck)
	a.addZero(a.text(fmt.Sprintf("step %s: %s", a.stepLabel(), why)))
	a.agent.detail = a.grade.Reasons
	return nil
}

// tailWriter keeps the last bytes that are written to it.
type tailWriter struct {
	limit int
	kept  []byte
	cut   bool
}

func (w *tailWriter) Write(p []byte) (int, error) {
	w.kept = append(w.kept, p...)
	if n := len(w.kept) - w.limit; n > 0 {
		w.kept, w.cut = bytes.Clone(w.kept[n:]), true
	}
	return len(p), nil
}

func (w *tailWriter) String() string {
	if w.cut {
		return "…" + string(w.kept)
	}
	return string(w.kept)
}
