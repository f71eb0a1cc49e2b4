// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tidemill/tidemill/runtime"
)

// Type is the word for this runtime.
const Type = "scripted"

// Config is what a [Runtime] is made from. The zero value is complete.
type Config struct {
	// Provider is shared by runtimes that are workers on one provider. Default: one of
	// its own.
	Provider *Provider
	// Control meets the scripts. Default: one of its own; see [Runtime.Control].
	Control *Control
	// Clock is what "sleep" and timeouts go by. Default: the real one.
	Clock Clock
	// Properties is what the runtime declares, and refuses beyond. Default:
	// [Everything].
	Properties *runtime.Properties
}

// Everything is what a scripted runtime can do.
func Everything() runtime.Properties {
	return runtime.Properties{
		Policies: []runtime.NetworkPolicy{runtime.FullInternet, runtime.NoInternet, runtime.LimitedInternet},
		Limits:   []string{"cpus", "memory", "disk", "pids", "files", "shm", "gpus"},
		Users:    true, Images: true, Services: true, OwnProcesses: true, HidesHost: true,
		Unprotected: []string{"nothing real runs here: programs are instructions that this process carries out"},
	}
}

// Runtime is an in-memory runtime that misbehaves on request.
type Runtime struct {
	cfg     Config
	props   runtime.Properties
	crashed atomic.Bool
}

var (
	_ runtime.Runtime     = (*Runtime)(nil)
	_ runtime.Environment = (*environment)(nil)
	_ runtime.Sandbox     = (*sandbox)(nil)
	_ runtime.Ingress     = (*sandbox)(nil)
)

// New returns a runtime.
func New(cfg Config) *Runtime {
	if cfg.Provider == nil {
		cfg.Provider = &Provider{}
	}
	if cfg.Control == nil {
		cfg.Control = &Control{}
	}
	if cfg.Clock == nil {
		cfg.Clock = wallClock{}
	}
	props := Everything()
	if cfg.Properties != nil {
		props = *cfg.Properties
	}
	return &Runtime{cfg: cfg, props: props}
}

// Control returns what meets the scripts.
func (r *Runtime) Control() *Control { return r.cfg.Control }

// Type implements [runtime.Runtime].
func (r *Runtime) Type() string { return Type }

// Properties implements [runtime.Runtime].
func (r *Runtime) Properties() runtime.Properties { return r.props }

// Crash stands for kill -9 of the worker: its sandboxes stay where they are and are
// no longer live; closing them through this worker does nothing any more.
func (r *Runtime) Crash() { r.crashed.Store(true) }

// Prepare implements [runtime.Runtime]. The option "prepare" is a script like the
// one of Open.
func (r *Runtime) Prepare(ctx context.Context, spec runtime.RunSpec) (runtime.Environment, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("prepare: %w", context.Cause(ctx))
	}
	if err := r.checkRun(spec); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	var text string
	for key, value := range spec.Options {
		s, ok := value.(string)
		if key != "prepare" || !ok {
			return nil, fmt.Errorf("prepare: option %s: %v: the scripted runtime has only the option \"prepare\", a text", key, value)
		}
		text = s
	}
	l := life{rt: r, name: "run " + spec.Run}
	if err := l.play(ctx, text); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	return &environment{rt: r}, nil
}

// List implements [runtime.Runtime].
func (r *Runtime) List(context.Context) ([]runtime.Resource, error) {
	var out []runtime.Resource
	for _, b := range r.cfg.Provider.all() {
		out = append(out, runtime.Resource{
			Handle: b.handle(), Name: b.name, Labels: b.spec.Labels, Created: b.created, Live: b.live(), Kept: b.isKept(),
		})
	}
	return out, nil
}

// Destroy implements [runtime.Runtime].
func (r *Runtime) Destroy(ctx context.Context, h runtime.Handle) error {
	if h.Runtime != Type {
		return fmt.Errorf("destroy %s %s: it is of runtime %q, this is %s", h.Kind, h.ID, h.Runtime, Type)
	}
	b := r.cfg.Provider.find(h.ID)
	if b == nil {
		return nil
	}
	b.end(runtime.ErrLost)
	if err := b.await(ctx); err != nil {
		return fmt.Errorf("destroy %s: %w", b.name, err)
	}
	r.cfg.Provider.drop(b)
	return nil
}

// Close implements [runtime.Runtime].
func (r *Runtime) Close() error {
	if r.crashed.Load() {
		return nil
	}
	var errs []error
	for _, b := range r.cfg.Provider.all() {
		if b.ownedBy(r) {
			errs = append(errs, fmt.Errorf("close: sandbox %s is still open", b.name))
		}
	}
	return errors.Join(errs...)
}

type environment struct{ rt *Runtime }

// Close implements [runtime.Environment].
func (*environment) Close(context.Context) error { return nil }
