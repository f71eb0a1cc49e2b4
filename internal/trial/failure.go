// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/runtime"
)

// failure ends an attempt early.
type failure struct {
	ending    Ending
	reason    string // the agent's own word, where it has one
	phase     string
	stage     string
	detail    string
	permanent bool
	capacity  bool
}

// openFailure is the failure of an attempt that has no sandbox.
func (a *attempt) openFailure(ctx context.Context, ending Ending, err error) *failure {
	f := &failure{ending: ending, phase: PhaseProvision, detail: err.Error(), permanent: unsupported(err)}
	f.capacity = errors.Is(err, runtime.ErrCapacity)
	if _, broken := errors.AsType[*bundle.MismatchError](err); broken {
		f.permanent = true
	}
	if pe, ok := errors.AsType[*runtime.ProvisionError](err); ok {
		f.stage, f.permanent = pe.Stage, f.permanent || pe.Permanent
		a.evidence = pe.Evidence
		a.grade.Reasons = a.text(fmt.Sprintf("Provisioning failed at %s: %v", pe.Stage, pe.Err))
	}
	if ending, ok := stopped(ctx); ok {
		a.grade.Reasons = ""
		return &failure{ending: ending, phase: PhaseProvision, detail: context.Cause(ctx).Error()}
	}
	return f
}

// trouble classifies an error of the runtime in a phase. other is what a program that
// can't be started or files that can't be placed mean there.
func (a *attempt) trouble(ctx context.Context, phase string, err error, other Ending) *failure {
	f := &failure{ending: InfraFailed, phase: phase, detail: err.Error(), permanent: unsupported(err)}
	_, start := errors.AsType[*runtime.StartError](err)
	_, path := errors.AsType[*runtime.PathError](err)
	switch ending, stop := stopped(ctx); {
	case stop:
		f.ending, f.detail, f.permanent = ending, context.Cause(ctx).Error(), false
	case errors.Is(err, runtime.ErrLost), a.lost(ctx):
		f.ending = SandboxLost
		a.dead = true
	case start || path:
		f.ending, f.detail = other, phase+": "+f.detail // several programs of a trial may be called the same
	}
	return f
}

// lost reports whether the sandbox is known to be dead.
func (a *attempt) lost(ctx context.Context) bool { return errors.Is(a.box.Alive(ctx), runtime.ErrLost) }

func unsupported(err error) bool {
	_, ok := errors.AsType[*runtime.UnsupportedError](err)
	return ok
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

// spoiled turns a verdict that may be ours to answer for into trouble of ours: all that a
// program of the task or the agent ended, but for a pass.
func (a *attempt) spoiled(fail *failure) *failure {
	phase := PhaseGrade
	switch {
	case a.Spoiled == nil:
		return fail
	case fail == nil && a.grade.BinaryPass:
		return nil
	case fail == nil:
	case fail.ending == SetupFailed, fail.ending == ProviderFailed, fail.ending == GraderFailed:
		phase = fail.phase
	default:
		return fail
	}
	if err := a.Spoiled(); err != nil {
		return &failure{ending: InfraFailed, phase: phase, detail: err.Error()}
	}
	return fail
}
