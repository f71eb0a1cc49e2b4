// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"context"
	"fmt"

	"github.com/tidemill/tidemill/runtime"
)

var (
	_ runtime.Keeper   = (*sandbox)(nil)
	_ runtime.Attacher = (*Runtime)(nil)
)

// Keep implements [runtime.Keeper].
func (s *sandbox) Keep(ctx context.Context) error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.kept.Store(true) // nothing begins any more
	if err := s.box.clear(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("keep %s: %w", s.box.name, err)
	}
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	s.box.owner, s.box.kept = nil, true
	s.gone = true
	return nil
}

// Attach implements [runtime.Attacher].
func (r *Runtime) Attach(ctx context.Context, h runtime.Handle) (runtime.Sandbox, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	b := r.cfg.Provider.find(h.ID)
	if h.Runtime != Type || b == nil {
		return nil, fmt.Errorf("attach %s: %w", h.ID, runtime.ErrLost)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ctx.Err() != nil:
		return nil, fmt.Errorf("attach %s: %w", h.ID, runtime.ErrLost)
	case b.owner != nil && !b.owner.crashed.Load():
		return nil, &runtime.ConflictError{Name: b.name, Owner: h, Labels: b.spec.Labels}
	case !b.kept:
		return nil, fmt.Errorf("attach %s: nobody kept it: it was left by a worker that died", h.ID)
	}
	b.owner, b.phase = r, runtime.Setup
	return &sandbox{rt: r, box: b}, nil
}

// live reports whether the box has an owner that lives.
func (b *box) live() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.owner != nil && !b.owner.crashed.Load()
}

func (b *box) isKept() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept
}

// ownedBy reports whether the box is a runtime's.
func (b *box) ownedBy(r *Runtime) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.owner == r
}

// clear ends all that runs in a box that stays.
func (b *box) clear(ctx context.Context) error {
	if err := b.kill(ctx, func(*proc) bool { return true }); err != nil {
		return err
	}
	b.shut()
	return nil
}
