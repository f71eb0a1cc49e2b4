// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/tidemill/tidemill/runtime"
)

// environment is what a worker keeps for a run: nothing but the right to open
// sandboxes.
type environment struct {
	rt     *Runtime
	closed atomic.Bool
}

var _ runtime.Environment = (*environment)(nil)

// Open makes a sandbox. There is nothing to wait for: ready is when the directories
// have their names.
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
	if err := checkSpec(spec); err != nil {
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
	return newSandbox(e.rt, estate, spec), nil
}

// Close makes the environment refuse new sandboxes.
func (e *environment) Close(context.Context) error {
	e.closed.Store(true)
	return nil
}
