// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/subprocess/internal/nest"
)

// Sandbox is a directory of this machine in which commands run.
type Sandbox struct {
	cfg     Config
	reap    *reaper
	spares  *spares
	estate  *estate
	spec    runtime.Spec
	options options
	env     map[string]string // of every command

	workPath, sidePath string

	groups  groups
	serial  atomic.Int64 // of commands
	quietAt atomic.Int64 // the last command when nothing was seen to be alive

	nest     *nest.Nest // nil where commands are started plainly
	nestSpec nest.Spec
	// Where the files are: in the side directory, or on a disk of a fixed size. The workdir
	// is only known to be on one; else it goes by its path.
	work, side *directory
	roomy      bool // its disk has room for a grader

	life context.Context // ends with the cause ErrClosed
	end  context.CancelCauseFunc

	workdir sync.Mutex // guards the estate's workdir and its identity
	closing sync.Mutex // held by Close
	mu      sync.Mutex
	closed  bool // nothing begins any more
	gone    bool // everything is removed
	busy    int  // calls that use the estate
	idle    chan struct{}
	online  bool // commands of this phase have the host's network

	listeners []net.Listener
	forwards  map[int]*forward // by port, see Endpoint
}

var (
	_ runtime.Sandbox = (*Sandbox)(nil)
	_ runtime.Ingress = (*Sandbox)(nil)
)

func newSandbox(env *environment, e *estate, spec runtime.Spec) *Sandbox {
	rt := env.rt
	s := &Sandbox{
		cfg: rt.cfg, reap: rt.claims.reap, spares: rt.claims.spares, estate: e, spec: spec, options: env.options, side: e.lock,
		workPath: e.path(rt.cfg.Root), sidePath: e.path(rt.cfg.Root) + sideSuffix,
	}
	network, _ := spec.NetworkFor(runtime.Setup)
	s.online = network.Policy != runtime.NoInternet
	s.life, s.end = context.WithCancelCause(context.Background())
	s.env = baseEnv(rt.cfg.Path, s.Path(runtime.Workdir), filepath.Join(s.sidePath, tmpName))
	maps.Copy(s.env, spec.Env)
	return s
}

// Name returns the base name of the workdir.
func (s *Sandbox) Name() string { return s.estate.Name }

// Handle names the workdir, with proof.
func (s *Sandbox) Handle() runtime.Handle { return s.estate.handle(s.cfg.Root) }

// Path returns where a place is on this machine.
func (s *Sandbox) Path(p runtime.Place) string {
	if p == runtime.Workdir {
		return s.workPath
	}
	return filepath.Join(s.sidePath, sidePlaces[p])
}

// enter is called before the estate is used, and refuses when that is over; leave is
// called after it.
func (s *Sandbox) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("sandbox %s: %w", s.estate.Name, runtime.ErrClosed)
	}
	s.busy++
	return nil
}

func (s *Sandbox) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy--; s.busy == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// bind returns a context that ends with the sandbox as well.
func (s *Sandbox) bind(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// EndProcesses kills everything that commands started, commands that still run
// included.
func (s *Sandbox) EndProcesses(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.endAll(ctx); err != nil {
		return fmt.Errorf("sandbox %s: %w", s.estate.Name, err)
	}
	return nil
}

func (s *Sandbox) endAll(ctx context.Context) error {
	if s.nest == nil {
		return s.endPlain(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.KillTimeout, errBudget)
	defer cancel()
	return s.lostNest(s.nest.End(ctx))
}

// endPlain looks through the process table, and remembers when it found it empty of ours
// while no other call was in that could be starting a command.
func (s *Sandbox) endPlain(ctx context.Context) error {
	last := s.serial.Load()
	s.mu.Lock()
	alone := s.busy == 1
	s.mu.Unlock()
	if err := s.reap.end(ctx, s.estate.quarry(s.cfg.Root), &s.groups); err != nil {
		return err
	}
	if alone {
		s.quietAt.Store(last)
	}
	return nil
}

var phases = []runtime.Phase{runtime.Setup, runtime.Agent, runtime.Grade}

// SetPhase switches to the phase's network, and to its room on the disk. Processes that a phase with the host's
// network left running are ended when the next one has none: they would keep it.
func (s *Sandbox) SetPhase(ctx context.Context, p runtime.Phase) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if !slices.Contains(phases, p) {
		return fmt.Errorf("phase %q: want %s, %s or %s", p, runtime.Setup, runtime.Agent, runtime.Grade)
	}
	network, _ := s.spec.NetworkFor(p)
	online := network.Policy != runtime.NoInternet
	s.mu.Lock()
	was := s.online
	s.online = online
	s.mu.Unlock()
	if was && !online {
		if err := s.endAll(ctx); err != nil {
			return fmt.Errorf("sandbox %s: %w", s.estate.Name, err)
		}
	}
	if err := s.makeRoom(ctx, p == runtime.Grade); err != nil {
		return fmt.Errorf("sandbox %s: %w", s.estate.Name, err)
	}
	return nil
}

// Evidence is empty: there are no services.
func (s *Sandbox) Evidence(context.Context, int) (runtime.Evidence, error) {
	if err := s.enter(); err != nil {
		return runtime.Evidence{}, err
	}
	defer s.leave()
	return runtime.Evidence{}, nil
}

// Alive tells whether the directories are where they should be and are the ones that we
// made, and the nest is alive.
func (s *Sandbox) Alive(context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.alive(); err != nil || s.nest == nil {
		return err
	}
	return s.aliveNest()
}

func (s *Sandbox) alive() error {
	same, err := isIdentity(nil, s.sidePath, s.estate.identity)
	if err != nil {
		return fmt.Errorf("sandbox %s: %w", s.estate.Name, err)
	}
	if !same {
		return fmt.Errorf("sandbox %s: %w: %s was removed or replaced", s.estate.Name, runtime.ErrLost, s.sidePath)
	}
	return s.mendWorkdir()
}

// Close ends what runs, removes what is there, and gives the name up. What it could
// not remove it says, and a further Close tries again.
func (s *Sandbox) Close(ctx context.Context) error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.gone {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.cfg.CloseTimeout, errBudget)
	defer cancel()

	if err := s.close(ctx, s.shut()); err != nil {
		return fmt.Errorf("close sandbox %s: %w", s.estate.Name, err)
	}
	s.gone = true
	return nil
}

// shut lets nothing begin any more, and returns a channel that closes when all calls
// have left; nil where none is in.
func (s *Sandbox) shut() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.end(runtime.ErrClosed)
	s.closed = true
	if s.busy > 0 && s.idle == nil {
		s.idle = make(chan struct{})
	}
	return s.idle
}

// quiet ends what runs.
func (s *Sandbox) quiet(ctx context.Context, idle <-chan struct{}) error {
	killed := s.killAll(ctx)
	if idle != nil {
		select {
		case <-idle:
			// A command that was just being started when we looked.
			killed = errors.Join(killed, s.killAll(ctx))
		case <-ctx.Done():
			return errors.Join(killed, fmt.Errorf("calls are still running in it: %w", context.Cause(ctx)))
		}
	}
	s.closeListeners()
	return killed
}

// killAll ends everything for good. Where nothing was started since all of it was seen to be
// gone there is nothing to look for.
func (s *Sandbox) killAll(ctx context.Context) error {
	if s.nest == nil {
		if s.quietAt.Load() == s.serial.Load() {
			return nil
		}
		return s.reap.end(ctx, s.estate.quarry(s.cfg.Root), &s.groups)
	}
	return s.nest.Close(ctx)
}

// abandon ends what is there, and removes nothing.
func (s *Sandbox) abandon(ctx context.Context) error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.cfg.CloseTimeout, errBudget)
	defer cancel()
	err := s.quiet(ctx, s.shut())
	s.closeDisk()
	s.groups.close()
	return err
}

func (s *Sandbox) close(ctx context.Context, idle <-chan struct{}) error {
	killed := s.quiet(ctx, idle)
	if ctx.Err() != nil {
		return errors.Join(killed, context.Cause(ctx))
	}
	root, err := openDir(s.cfg.Root)
	if err != nil {
		return errors.Join(killed, err)
	}
	defer root.Close()
	if killed == nil {
		s.spares.give(ctx, s.estate.lock)
	}
	if err := errors.Join(killed, s.estate.demolish(ctx, root, s.estate.Name+sideSuffix)); err != nil {
		return err
	}
	s.closeDisk()
	s.groups.close()
	s.estate.release()
	return nil
}
