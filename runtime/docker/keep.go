// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

var (
	_ runtime.Keeper   = (*Sandbox)(nil)
	_ runtime.Attacher = (*Runtime)(nil)
)

// Keep ends the sandbox's processes and gives up its lock. The container goes on with
// PID 1 alone, and a file beside the owner's record says that this was meant.
func (s *Sandbox) Keep(ctx context.Context) error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.gone {
		return fmt.Errorf("keep sandbox %s: %w", s.estate.Name, runtime.ErrClosed)
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.rt.cfg.Close, errBudget)
	defer cancel()
	if s.life.Err() != nil {
		return fmt.Errorf("keep sandbox %s: %w", s.estate.Name, context.Cause(s.life))
	}
	s.power.Lock()
	err := s.endAll(ctx)
	idle := s.shut()
	s.power.Unlock()
	if err == nil && idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			err = fmt.Errorf("calls are still running in it: %w", context.Cause(ctx))
		}
	}
	if err == nil {
		// Nothing begins any more, but something may have begun between the two.
		err = s.endLast(ctx)
	}
	if err == nil {
		err = s.estate.writeKept(kept{Version: recordVersion, Nonce: s.estate.Nonce, At: time.Now().UTC(), Spec: s.spec, Box: s.box})
	}
	if err != nil {
		return fmt.Errorf("keep sandbox %s: %w", s.estate.Name, err)
	}
	s.rt.watch.drop(s)
	s.estate.release()
	s.gone = true
	return nil
}

// endLast is endAll for a sandbox in which no call is any more.
func (s *Sandbox) endLast(ctx context.Context) error {
	alone, err := s.alone(ctx)
	if err != nil || alone {
		return err
	}
	if err := s.killInside(ctx); err != nil {
		return err
	}
	if alone, err = s.alone(ctx); err == nil && !alone {
		err = errors.New("its processes can't be ended")
	}
	return err
}

// Attach takes the lock of a kept sandbox and goes on with it. What keeps it stays in
// place, so that a crash of the new owner doesn't make it a leftover.
func (r *Runtime) Attach(ctx context.Context, h runtime.Handle) (runtime.Sandbox, error) {
	sb, err := r.attach(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("attach to container %s: %w", h.ID, err)
	}
	return sb, nil
}

func (r *Runtime) attach(ctx context.Context, h runtime.Handle) (_ *Sandbox, err error) {
	if r.closed.Load() {
		return nil, errRuntimeClosed
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if h.Runtime != Type || h.Kind != kindContainer {
		return nil, fmt.Errorf("a %s of runtime %s is no sandbox of the docker runtime", h.Kind, h.Runtime)
	}
	m, err := r.machine(ctx)
	if err != nil {
		return nil, err
	}
	labels, err := r.labelsOf(ctx, h)
	if isGone(err) {
		return nil, runtime.ErrLost
	}
	if err != nil {
		return nil, err
	}
	if labels[labelManaged] != Type || labels[labelStore] != r.cfg.Store {
		return nil, fmt.Errorf("it belongs to store %q, we to %s", labels[labelStore], r.cfg.Store)
	}
	if labels[labelHost] != hostID() {
		return nil, errors.New("it was kept on another machine: go on with it there")
	}
	e, err := readEstate(labels)
	if err != nil {
		return nil, err
	}
	if e.lock, err = lockDir(e.path); err != nil {
		return nil, err
	}
	if e.lock == nil {
		return nil, &runtime.ConflictError{Name: e.Name, Owner: h, Labels: read(labels)}
	}
	defer func() {
		if err != nil {
			e.release()
		}
	}()
	k, err := e.readKept()
	if notThere(err) {
		return nil, errors.New("nobody kept it: it was left by a process that died")
	}
	if err != nil {
		return nil, err
	}
	if k.Box.ID != h.ID {
		return nil, fmt.Errorf("%w: its record is of container %s", runtime.ErrLost, k.Box.ID)
	}
	if err := m.checkSpec(k.Spec); err != nil {
		return nil, err
	}
	return r.resume(ctx, e, k)
}

// resume goes on with a container, which may have stopped with the machine.
func (r *Runtime) resume(ctx context.Context, e *estate, k kept) (*Sandbox, error) {
	s := newSandbox(r, e, k.Spec, k.Box)
	state, err := r.engine.state(ctx, k.Box.ID)
	switch {
	case isGone(err):
		return nil, runtime.ErrLost
	case err != nil:
		return nil, err
	case state.Paused:
		_, err = slow(ctx, r.engine, "unpause container", just(func(ctx context.Context) error {
			return r.engine.ContainerUnpause(ctx, k.Box.ID)
		}))
	case !state.Running && k.Box.Volume != "":
		err = fmt.Errorf("%w: it was stopped, and its disk was in memory", runtime.ErrLost)
	case !state.Running:
		err = s.start(ctx)
	default:
		s.started(state)
	}
	if err != nil {
		return nil, err
	}
	if err := s.applyNetwork(ctx, runtime.Setup); err != nil {
		return nil, err
	}
	s.dirty = true // nobody knows
	r.watch.add(s)
	return s, nil
}
