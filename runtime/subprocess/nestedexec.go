// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/subprocess/internal/nest"
)

// nested is what a process has when it runs in a nest.
type nested struct {
	nest    *nest.Nest
	command nest.Command
	process *nest.Process
	status  nest.Status
	err     error // instead of a status
	// limited: the sandbox's resources that this may have run into.
	limits runtime.Resources
}

// prepareNested leaves it to the nest to find the program: it sees other files than we.
func (s *Sandbox) prepareNested(cmd runtime.Command, dir string, env []string, path, mark string) *process {
	s.mu.Lock()
	online := s.online
	s.mu.Unlock()
	p := newProcess("", cmd, dir, env, mark)
	p.nested = &nested{
		nest: s.nest, limits: s.spec.Resources,
		command: nest.Command{
			Argv: cmd.Argv, Env: env, Path: path, Dir: dir, Online: online,
			OpenFiles: s.spec.Resources.Files, FileSize: s.spec.Resources.Disk,
		},
	}
	return p
}

func (p *process) runNested() {
	n := p.nested
	p.err = p.startNested()
	if p.err == nil {
		p.streams.serve(p.command)
	}
	close(p.started)
	if p.err == nil {
		n.status, n.err = n.process.Wait()
	}
}

func (p *process) startNested() error {
	files, err := p.streams.open(p.command)
	if err != nil {
		return fmt.Errorf("make pipes: %w", err)
	}
	n := p.nested
	n.command.Files = files
	n.process, err = n.nest.Start(n.command)
	p.streams.closeTheirs()
	if err != nil {
		p.streams.closeOurs()
	}
	return err
}

func (p *process) finishNested(grace time.Duration) (runtime.Exit, error) {
	n := p.nested
	readErr := p.streams.finish(grace)
	if n.err != nil {
		return runtime.Exit{Code: -1}, n.err
	}
	exit := exitOfStatus(n.status.Wait)
	if !exit.OK() {
		exit.Exhausted = n.exhausted(exit)
	}
	return exit, readErr
}

// exhausted tells which limit a program that failed has run into.
func (n *nested) exhausted(exit runtime.Exit) string {
	switch {
	case n.status.OOM:
		return runtime.OutOfMemory
	case n.limits.Disk > 0 && (n.status.Full || exit.Signal == "SIGXFSZ"):
		return runtime.OutOfDisk
	case n.status.Pids:
		return runtime.OutOfPids
	}
	return ""
}

// notStarted tells whose fault it is that a nest couldn't start a program. Where there is
// no room in the sandbox for one more, the sandbox's own programs took it.
func (s *Sandbox) notStarted(cmd runtime.Command, err *nest.StartError) (runtime.Exit, error) {
	const cantExecute = 126 // as a shell says it
	switch limits := s.spec.Resources; {
	case errors.Is(err, unix.EAGAIN) && limits.Pids > 0:
		return runtime.Exit{Code: cantExecute, Exhausted: runtime.OutOfPids}, nil
	case errors.Is(err, unix.ENOMEM) && limits.Memory > 0:
		return runtime.Exit{Code: cantExecute, Exhausted: runtime.OutOfMemory}, nil
	}
	return runtime.Exit{}, s.startError(cmd, err.Err)
}

// killNested ends the command's group in one step, and those of its descendants that
// left it by looking for them. What escapes that look does not escape the nest.
func (s *Sandbox) killNested(ctx context.Context, p *process, gently bool) error {
	n := p.nested
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.cfg.KillGrace+2*s.cfg.KillTimeout, errBudget)
	defer cancel()
	if gently && s.cfg.KillGrace > 0 {
		if err := n.process.Signal(ctx, syscall.SIGTERM); err != nil {
			return err
		}
		p.awaitEnd(ctx, s.cfg.KillGrace)
	}
	if err := n.process.Signal(ctx, syscall.SIGKILL); err != nil {
		return err
	}
	p.awaitEnd(ctx, s.cfg.KillTimeout)
	if !p.hasEnded() {
		return errors.New("the command is alive although it was killed")
	}
	return s.reap.end(ctx, quarry{mark: markVar + "=" + p.mark + "\x00"}, nil)
}
