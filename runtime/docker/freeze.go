// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

// remove has our tool remove a path, in which it follows no symlink. Where one is in the
// way, it is told by the look that comes after.
func (s *Sandbox) remove(ctx context.Context, p string) error {
	s.touch()
	code, err := s.tool(ctx, "0:0", boxtool.Remove, p)
	const notDirectory, loop = 20, 40 // a part of the way is no directory
	if err == nil && code != 0 && code != notDirectory && code != loop {
		err = fmt.Errorf("remove %s: error number %d", p, code)
	}
	return err
}

// touch notes that something ran.
func (s *Sandbox) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = true
}

// freeze stops everything inside where something may be running, and returns what lets it
// go on. The caller holds power.
func (s *Sandbox) freeze(ctx context.Context) (thaw func() error, err error) {
	s.mu.Lock()
	still := !s.dirty && len(s.running) == 0
	s.mu.Unlock()
	if still {
		return func() error { return nil }, nil
	}
	e := s.rt.engine
	_, err = slow(ctx, e, "pause container", just(func(ctx context.Context) error { return e.ContainerPause(ctx, s.box.ID) }))
	thaw = func() error {
		_, err := slow(context.WithoutCancel(ctx), e, "unpause container", just(func(ctx context.Context) error {
			return e.ContainerUnpause(ctx, s.box.ID)
		}))
		if err != nil && (isGone(err) || isConflict(err)) {
			return nil // it isn't there, or isn't frozen
		}
		return err
	}
	if err != nil && !isAnswer(err) {
		return nil, errors.Join(err, thaw()) // it may have been
	}
	return thaw, err
}

// An engine hears from containerd of a pause that it asked for once more, and may then believe
// that a container is paused which goes on already, until it hears of that too.
const (
	stillPaused = 5 * time.Second
	pausedWait  = 20 * time.Millisecond
)

// thawed asks again for a while when the engine says that the container is paused. The
// caller holds power, so that nobody here has frozen it.
func thawed[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	deadline := time.Now().Add(stillPaused)
	for {
		v, err := ask()
		if err == nil || !isConflict(err) || !strings.Contains(err.Error(), "is paused") || time.Now().After(deadline) {
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, context.Cause(ctx)
		case <-time.After(pausedWait): // nothing tells when the engine knows
		}
	}
}
