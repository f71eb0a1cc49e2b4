// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/images"
)

// environment is what a worker keeps for a run.
type environment struct {
	rt      *Runtime
	machine *machine
	images  *images.Run
	closed  atomic.Bool
}

var _ runtime.Environment = (*environment)(nil)

// Open makes a container. Ready is when our PID 1 runs in it and everything has its place.
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
	spec.Name = name
	if err := e.machine.checkSpec(spec); err != nil {
		return fail(runtime.StagePolicy, true, err)
	}
	if err := e.rt.checkStore(spec.Labels.Store); err != nil {
		return fail(runtime.StageProvision, true, err)
	}
	if ctx.Err() != nil {
		return fail(runtime.StageProvision, false, context.Cause(ctx))
	}
	image, err := e.images.Ensure(ctx, spec.Image)
	if err != nil {
		return nil, images.Provision(name, err)
	}
	ready := cmp.Or(spec.ReadyTimeout, e.rt.cfg.Ready)
	ctx, cancel := context.WithTimeoutCause(ctx, ready, fmt.Errorf("not ready after %v", ready))
	defer cancel()

	o := &opening{rt: e.rt, machine: e.machine, spec: spec, image: image, stage: runtime.StageProvision}
	sb, err := o.open(ctx)
	if err != nil {
		refused := (*refusedError)(nil)
		return nil, &runtime.ProvisionError{
			Stage: o.stage, Name: name, Err: err, Evidence: o.evidence, Permanent: errors.As(err, &refused),
		}
	}
	return sb, nil
}

// Close makes the environment refuse new sandboxes, and lets go of its images.
func (e *environment) Close(context.Context) error {
	if !e.closed.Swap(true) {
		e.images.Close()
	}
	return nil
}
