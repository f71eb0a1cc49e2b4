// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"cmp"
	"context"
	"errors"

	"github.com/tidemill/tidemill/runtime"
)

// Open implements [runtime.Environment].
func (e *environment) Open(ctx context.Context, spec runtime.Spec) (runtime.Sandbox, error) {
	name := cmp.Or(spec.Name, runtime.NewName())
	refuse := func(stage string, permanent bool, err error) (runtime.Sandbox, error) {
		return nil, &runtime.ProvisionError{Stage: stage, Name: name, Err: err, Permanent: permanent}
	}
	if err := runtime.CheckName(name); err != nil {
		return refuse(runtime.StageName, true, err)
	}
	if err := e.rt.checkSpec(spec); err != nil {
		return refuse(runtime.StagePolicy, true, err)
	}
	if ctx.Err() != nil {
		return refuse(runtime.StageProvision, false, context.Cause(ctx))
	}
	b := newBox(e.rt, name, spec)
	if err := e.rt.cfg.Provider.reserve(b); err != nil {
		return refuse(runtime.StageProvision, false, err)
	}
	sb := &sandbox{rt: e.rt, box: b}
	if err := sb.provision(ctx); err != nil {
		return nil, err
	}
	return sb, nil
}

// provision plays the script. What fails leaves its evidence and nothing else.
func (s *sandbox) provision(ctx context.Context) error {
	clock := s.rt.cfg.Clock
	ready, stop := withTimeout(ctx, clock, s.box.spec.ReadyTimeout, errNotReady)
	defer stop()
	l := life{rt: s.rt, name: s.box.name, box: s.box}
	err := l.open(ready, s.box.spec.Env[OpenVar])
	if err == nil {
		return nil
	}
	fault := &runtime.ProvisionError{Stage: runtime.StageProvision, Name: s.box.name, Err: err}
	var (
		scripted *failure
		bad      *badScript
	)
	switch {
	case errors.As(err, &scripted):
		fault.Stage, fault.Permanent = cmp.Or(scripted.stage, fault.Stage), scripted.permanent
	case errors.As(err, &bad):
		fault.Permanent = true
	case errors.Is(err, errNotReady):
		fault.Stage = runtime.StageReady
	}
	budget, end := withTimeout(context.WithoutCancel(ctx), clock, closeBudget, errBudget)
	defer end()
	// Evidence of a box in memory has no way to fail.
	fault.Evidence, _ = s.Evidence(budget, 0)
	s.box.end(runtime.ErrClosed)
	if err := s.box.await(budget); err != nil {
		fault.Err = errors.Join(fault.Err, err)
	}
	s.rt.cfg.Provider.drop(s.box)
	return fault
}
