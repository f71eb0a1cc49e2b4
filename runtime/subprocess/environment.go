// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/subprocess/internal/nest"
)

// environment is what a worker keeps for a run.
type environment struct {
	rt      *Runtime
	options options
	able    abilities
	view    *nest.View // where able.nested
	closed  atomic.Bool
}

var _ runtime.Environment = (*environment)(nil)

// Open makes a sandbox. There is nothing to wait for: ready is when the directories
// have their names, and the nest is there.
func (e *environment) Open(ctx context.Context, spec runtime.Spec) (runtime.Sandbox, error) {
	name := cmp.Or(spec.Name, runtime.NewName())
	fail := func(stage string, permanent bool, err error) (runtime.Sandbox, error) {
		return nil, &runtime.ProvisionError{Stage: stage, Name: name, Err: err, Permanent: permanent}
	}
	if e.closed.Load() || e.rt.closed.Load() {
		return fail(runtime.StageProvision, false, errRuntimeClosed)
	}
	if err := runtime.CheckName(name); err != nil {
		return fail(runtime.StageName, true, err)
	}
	if err := e.able.checkSpec(spec); err != nil {
		return fail(runtime.StagePolicy, true, err)
	}
	if err := e.rt.checkStore(spec.Labels.Store); err != nil {
		return fail(runtime.StageProvision, true, err)
	}
	if ctx.Err() != nil {
		return fail(runtime.StageProvision, false, context.Cause(ctx))
	}
	if spec.ReadyTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, spec.ReadyTimeout, fmt.Errorf("not ready after %v", spec.ReadyTimeout))
		defer cancel()
	}
	labels := spec.Labels
	labels.Store = e.rt.cfg.Store
	estate, err := e.rt.claims.claim(ctx, name, labels)
	if err != nil {
		return fail(runtime.StageProvision, false, err)
	}
	sb, err := e.furnish(ctx, estate, spec)
	if err != nil {
		return fail(runtime.StageProvision, false, errors.Join(err, sb.Close(ctx)))
	}
	return sb, nil
}

// furnish makes a sandbox of an estate. One that is not complete comes with an error.
func (e *environment) furnish(ctx context.Context, est *estate, spec runtime.Spec) (*Sandbox, error) {
	sb := newSandbox(e, est, spec)
	if !e.able.nested {
		return sb, nil
	}
	return sb, e.openNest(ctx, sb, spec)
}

// Close makes the environment refuse new sandboxes.
func (e *environment) Close(context.Context) error {
	e.closed.Store(true)
	return nil
}
