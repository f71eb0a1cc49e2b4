// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// closeBudget bounds Close, whatever its context says.
const closeBudget = 30 * time.Second

// places are where Harbor has them, below the root of the box. The workdir is where
// Spec.Workdir says, if it does.
var places = map[runtime.Place]string{
	runtime.Workdir:   "/workdir",
	runtime.Logs:      "/logs",
	runtime.AgentLogs: "/logs/agent",
	runtime.Verdict:   "/logs/verifier",
	runtime.Artifacts: "/logs/artifacts",
	runtime.Tests:     "/tests",
	runtime.Solution:  "/solution",
	runtime.Input:     "/input",
}

// sandbox is a box in the hands of who opened it.
type sandbox struct {
	rt  *Runtime
	box *box

	kept    atomic.Bool
	closing sync.Mutex // one Close at a time
	gone    bool
}

// Name implements [runtime.Sandbox].
func (s *sandbox) Name() string { return s.box.name }

// Handle implements [runtime.Sandbox].
func (s *sandbox) Handle() runtime.Handle { return s.box.handle() }

// Path implements [runtime.Sandbox].
func (s *sandbox) Path(p runtime.Place) string { return s.box.path(p) }

// usable returns why the sandbox can't be used: its own end, or the caller's.
func (s *sandbox) usable(ctx context.Context) error {
	if s.box.ctx.Err() != nil {
		return fmt.Errorf("%s: %w", s.box.name, context.Cause(s.box.ctx))
	}
	if s.kept.Load() {
		return fmt.Errorf("%s was kept: %w", s.box.name, runtime.ErrClosed)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// EndProcesses implements [runtime.Sandbox].
func (s *sandbox) EndProcesses(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return s.box.kill(ctx, func(p *proc) bool { return p.left })
}

// SetPhase implements [runtime.Sandbox].
func (s *sandbox) SetPhase(ctx context.Context, p runtime.Phase) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if !slices.Contains([]runtime.Phase{runtime.Setup, runtime.Agent, runtime.Grade}, p) {
		return fmt.Errorf("phase %q: want %s, %s or %s", p, runtime.Setup, runtime.Agent, runtime.Grade)
	}
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	s.box.phase = p
	return nil
}

// Alive implements [runtime.Sandbox].
func (s *sandbox) Alive(ctx context.Context) error { return s.usable(ctx) }

// Evidence implements [runtime.Sandbox].
func (s *sandbox) Evidence(ctx context.Context, tail int) (runtime.Evidence, error) {
	b := s.box
	b.mu.Lock()
	defer b.mu.Unlock()
	e := runtime.Evidence{Missing: slices.Clone(b.missing)}
	if err := s.usable(ctx); err != nil {
		e.Missing = append(e.Missing, err.Error())
	}
	names := []string{b.spec.Runner}
	for _, service := range b.spec.Services {
		names = append(names, service.Name)
	}
	for name := range b.evidence {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		one := *b.about(name)
		one.Log, one.Truncated = lastLines(one.Log, tail)
		e.Services = append(e.Services, one)
	}
	return e, nil
}

// lastLines cuts a log to its tail; 0 is all of it.
func lastLines(log []byte, tail int) ([]byte, bool) {
	lines := bytes.SplitAfter(bytes.Clone(log), []byte("\n"))
	if n := len(lines); n > 0 && len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	if tail <= 0 || len(lines) <= tail {
		return bytes.Join(lines, nil), false
	}
	return bytes.Join(lines[len(lines)-tail:], nil), true
}

// Close implements [runtime.Sandbox].
func (s *sandbox) Close(ctx context.Context) error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.gone || s.rt.crashed.Load() {
		return nil
	}
	ctx, stop := withTimeout(context.WithoutCancel(ctx), s.rt.cfg.Clock, closeBudget, errBudget)
	defer stop()
	s.box.end(runtime.ErrClosed)
	l := life{rt: s.rt, name: s.box.name, box: s.box}
	if err := l.play(ctx, s.box.spec.Env[CloseVar]); err != nil {
		return fmt.Errorf("close %s: %w", s.box.name, err)
	}
	if err := s.box.await(ctx); err != nil {
		return fmt.Errorf("close %s: %w", s.box.name, err)
	}
	s.rt.cfg.Provider.drop(s.box)
	s.gone = true
	return nil
}
