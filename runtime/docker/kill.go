// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

// EndProcesses kills everything in the container but PID 1, commands that still run
// included.
func (s *Sandbox) EndProcesses(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.power.Lock()
	defer s.power.Unlock()
	return s.endAll(ctx)
}

// endCommand ends a command that is out of time, or whose caller gave up. Alone it is
// ended with everything in the box. Beside others only what can be told apart is: where
// the engine runs on this machine and lets us. Where not, a timeout ends the others too
// ([errBeside]), for it must bind; a caller who gave up (a person who looked around)
// only takes the streams away.
func (s *Sandbox) endCommand(ctx context.Context, c *command, timedOut bool) error {
	ctx = context.WithoutCancel(ctx)
	s.power.Lock()
	defer s.power.Unlock()
	others := s.others(c)
	if len(others) == 0 {
		return s.endAll(ctx)
	}
	if s.endApart(ctx, c) {
		return nil
	}
	if !timedOut {
		if c.stream != nil {
			_ = c.stream.conn.Close()
		}
		return nil
	}
	s.mu.Lock()
	for _, o := range others {
		o.beside = true
	}
	s.mu.Unlock()
	return s.endAll(ctx)
}

// others lists the commands that run beside one.
func (s *Sandbox) others(c *command) []*command {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*command
	for o := range s.running {
		if o != c && !o.isOver() {
			list = append(list, o)
		}
	}
	return list
}

// endAll climbs the ladder: our tool in the box, then a stop and a start, then the sandbox
// is lost. Each rung is proven by the engine's list of processes. It is not cancelled:
// half of it would be no end.
func (s *Sandbox) endAll(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if alone, err := s.alone(ctx); err == nil && alone {
		return s.quiet()
	}
	killErr := s.killInside(ctx)
	alone, err := s.alone(ctx)
	if err == nil && alone {
		return s.quiet()
	}
	if err != nil && killErr == nil && s.box.Mounted && s.alive(ctx) == nil {
		// The engine's machine may have no ps that it understands. Then the word of our own
		// tool counts, which nobody inside can replace: it looked and found nobody.
		return s.quiet()
	}
	if lost := s.alive(ctx); errors.Is(lost, runtime.ErrLost) || errors.Is(lost, runtime.ErrClosed) {
		return lost
	}
	if err := s.restart(ctx); unheard(err) {
		return fmt.Errorf("sandbox %s: its processes may not have ended: %w", s.estate.Name, err)
	} else if err != nil {
		return s.lose(fmt.Sprintf("its processes can't be ended (%v), nor can it be started anew: %v", killErr, err))
	}
	if alone, err = s.alone(ctx); err == nil && !alone {
		return s.lose("a container that was just started has more processes than ours")
	}
	return s.quiet()
}

// quiet notes that nothing runs.
func (s *Sandbox) quiet() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = false
	return nil
}

// killInside has our tool kill everything but itself and PID 1: as root, which may kill
// everybody's processes with the capabilities that our boxes have, and as the agent's user
// where root may not.
func (s *Sandbox) killInside(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.rt.cfg.Kill, fmt.Errorf("not done after %v", s.rt.cfg.Kill))
	defer cancel()
	var errs []error
	for _, user := range []string{"0:0", fmt.Sprintf("%d:%d", s.box.Agent.UID, s.box.Agent.GID)} {
		code, err := s.tool(ctx, user, boxtool.Kill)
		if err == nil && code == 0 {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("as %s it says %d", user, code)
		}
		errs = append(errs, err)
		if s.box.Agent.UID == 0 || ctx.Err() != nil {
			break
		}
	}
	return fmt.Errorf("kill inside: %w", errors.Join(errs...))
}

// tool runs our tool in the container, by the side of everything else.
func (s *Sandbox) tool(ctx context.Context, user string, args ...string) (int, error) {
	e := s.rt.engine
	if !s.box.Mounted { // programs inside may have changed it
		if err := s.rt.tools.put(ctx, s.box.ID, s.box.Arch); err != nil {
			return 0, err
		}
	}
	opts := container.ExecOptions{
		User: user, Cmd: append([]string{toolPath}, args...), WorkingDir: "/", AttachStdout: true, AttachStderr: true,
	}
	made, err := thawed(ctx, func() (container.ExecCreateResponse, error) {
		return quick(ctx, e, "create exec of the tool", func(ctx context.Context) (container.ExecCreateResponse, error) {
			return e.ContainerExecCreate(ctx, s.box.ID, opts)
		})
	})
	if err != nil {
		return 0, err
	}
	c := newCommand(e, s.box.ID, made.ID)
	s.rt.watch.enlist(c)
	defer s.rt.watch.delist(c)
	if c.stream, err = thawed(ctx, func() (*stream, error) { return e.attach(ctx, made.ID) }); err != nil {
		return 0, err
	}
	c.serve(runtime.Command{})
	c.follow(ctx, s.rt.watch)
	c.finish(s.rt.cfg.OutputGrace)
	if c.err == nil && c.info.Pid == 0 {
		c.err = fmt.Errorf("the tool can't be started: %s", reason(strings.TrimSpace(string(c.unsaid))))
	}
	return c.info.ExitCode, c.err
}

// killWait is how long is waited between looks at processes that were killed.
const killWait = 20 * time.Millisecond
