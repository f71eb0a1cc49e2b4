// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/docker/docker/api/types/container"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/subnet"
)

// Sandbox is a container in which commands run.
type Sandbox struct {
	rt     *Runtime
	estate *estate
	spec   runtime.Spec
	box    boxFacts
	net    *subnet.Network // that Open made

	life context.Context // ends with ErrClosed, or with ErrLost
	end  context.CancelCauseFunc

	// power is held for writing by who kills everything, stops the container, freezes it
	// or changes its network, and for reading while a command is being started.
	power   sync.RWMutex
	closing sync.Mutex // held by Close and Keep

	mu       sync.Mutex
	closed   bool // nothing begins any more
	gone     bool // everything is removed, or given up
	busy     int  // calls that are in
	idle     chan struct{}
	phase    runtime.Phase
	running  map[*command]struct{}
	dirty    bool // something but PID 1 may be running
	restarts int
	stopping bool   // by us, to start it again
	group    string // where the kernel counts its processes; empty where that can't be seen
	pid      int    // of PID 1, on the engine's machine
}

var (
	_ runtime.Sandbox   = (*Sandbox)(nil)
	_ runtime.Described = (*Sandbox)(nil)
)

func newSandbox(rt *Runtime, e *estate, spec runtime.Spec, box boxFacts) *Sandbox {
	s := &Sandbox{rt: rt, estate: e, spec: spec, box: box, phase: runtime.Setup, running: map[*command]struct{}{}}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}

// Name returns the name of the container.
func (s *Sandbox) Name() string { return s.estate.Name }

// Handle names the container by its id.
func (s *Sandbox) Handle() runtime.Handle { return handle(kindContainer, s.box.ID) }

// places is where the places are inside; the workdir differs.
var places = map[runtime.Place]string{
	runtime.Logs:      "/logs",
	runtime.AgentLogs: "/logs/agent",
	runtime.Verdict:   "/logs/verifier",
	runtime.Artifacts: "/logs/artifacts",
	runtime.Tests:     "/tests",
	runtime.Solution:  "/solution",
	runtime.Input:     "/input",
	runtime.Root:      "/",
}

// Path returns where a place is inside.
func (s *Sandbox) Path(p runtime.Place) string {
	if p == runtime.Workdir {
		return s.box.Workdir
	}
	return places[p]
}

// Describe returns which image it was made from, and its network.
func (s *Sandbox) Describe() runtime.Description {
	image := s.box.Image
	d := runtime.Description{Images: []runtime.ImageFacts{{
		Ref: s.spec.Image.Ref, ID: image.ID, Digest: image.RepoDigest, Origin: string(image.Origin), Platform: image.Platform,
	}}}
	if s.box.Network != "" {
		d.Networks = []runtime.NetworkFacts{{Name: s.box.Facts.Name, Subnet: s.box.Facts.Subnet}}
	}
	return d
}

// enter is called before the container is used, and refuses when that is over; leave is
// called after it.
func (s *Sandbox) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("sandbox %s: %w", s.estate.Name, runtime.ErrClosed)
	}
	if s.life.Err() != nil {
		return fmt.Errorf("sandbox %s: %w", s.estate.Name, context.Cause(s.life))
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

// start starts the container, which then has our PID 1 in it and nothing else.
func (s *Sandbox) start(ctx context.Context) error {
	e := s.rt.engine
	_, err := slow(ctx, e, "start container", just(func(ctx context.Context) error {
		return e.ContainerStart(ctx, s.box.ID, container.StartOptions{})
	}))
	if err != nil {
		return err
	}
	state, err := e.state(ctx, s.box.ID)
	if err == nil && !state.Running {
		err = fmt.Errorf("the container ended as soon as it was started: %s", stateText(state))
	}
	if err == nil {
		s.started(state)
	}
	return err
}

// started notes what differs from one start to the next.
func (s *Sandbox) started(state *container.State) {
	group := ""
	if s.spec.Resources.Pids > 0 {
		group = pidsGroup(state.Pid, s.box.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group, s.pid = group, state.Pid
}

// state asks how a container is.
func (e *engine) state(ctx context.Context, id string) (*container.State, error) {
	info, err := quick(ctx, e, "inspect container", func(ctx context.Context) (container.InspectResponse, error) {
		return e.ContainerInspect(ctx, id)
	})
	if err != nil {
		return nil, err
	}
	if info.ContainerJSONBase == nil || info.State == nil {
		return nil, fmt.Errorf("docker: inspect container %s: the answer has no state", id)
	}
	return info.State, nil
}

// Alive tells whether the container runs. Whether it does can be unknown: then nobody
// says that it is lost.
func (s *Sandbox) Alive(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.power.RLock() // not in the middle of a restart
	defer s.power.RUnlock()
	return s.alive(ctx)
}

func (s *Sandbox) alive(ctx context.Context) error {
	for {
		if s.life.Err() != nil {
			return fmt.Errorf("sandbox %s: %w", s.estate.Name, context.Cause(s.life))
		}
		before, _ := s.restarting()
		state, err := s.rt.engine.state(ctx, s.box.ID)
		switch {
		case isGone(err):
			return s.lose("its container was removed")
		case err != nil:
			return fmt.Errorf("sandbox %s: %w", s.estate.Name, err)
		case state.Running && state.Status != "removing":
			return nil
		}
		if after, stopping := s.restarting(); !stopping && after == before {
			return s.lose("its container doesn't run any more: " + stateText(state))
		}
		s.awaitRestart()
	}
}

// awaitRestart returns when the container was started again by us.
func (s *Sandbox) awaitRestart() {
	s.power.RLock()
	defer s.power.RUnlock()
}

// restarting returns how often the container was started again, and whether it is being.
func (s *Sandbox) restarting() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restarts, s.stopping
}

// lose notes that the sandbox is dead, and ends whatever is going on in it.
func (s *Sandbox) lose(why string) error {
	s.end(fmt.Errorf("%w: %s", runtime.ErrLost, why))
	return fmt.Errorf("sandbox %s: %w", s.estate.Name, context.Cause(s.life))
}

// lostOr says that the sandbox is lost where that explains an error of the engine's.
func (s *Sandbox) lostOr(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	if lost := s.alive(context.WithoutCancel(ctx)); errors.Is(lost, runtime.ErrLost) || errors.Is(lost, runtime.ErrClosed) {
		return errors.Join(lost, err)
	}
	return err
}

// Close removes the container and all that belongs to it. What it could not remove it
// says, and a further Close tries again.
func (s *Sandbox) Close(ctx context.Context) error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.gone {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.rt.cfg.Close, errBudget)
	defer cancel()
	idle := s.shut()
	s.rt.watch.drop(s)
	// To remove the container ends what runs in it, and with that the calls that are in.
	err := s.rt.destroyBox(ctx, s.box)
	if err == nil && s.net != nil { // it is gone: this gives its addresses back
		err = s.rt.subnets.Remove(ctx, s.net)
	}
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			err = errors.Join(err, fmt.Errorf("calls are still running in it: %w", context.Cause(ctx)))
		}
	}
	if err != nil {
		return fmt.Errorf("close sandbox %s: %w", s.estate.Name, err)
	}
	s.estate.forget()
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

// ownWorkdir gives the workdir to the agent's user, as where it is made.
func (s *Sandbox) ownWorkdir(ctx context.Context) error {
	return s.rt.engine.putDirs(ctx, s.box.ID, dirEntry{path.Clean(s.box.Workdir), s.box.Agent, 0o755})
}
