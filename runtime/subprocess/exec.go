// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/subprocess/internal/nest"
)

// Exec runs a program to its end.
//
// Its streams are pipes, so that nothing inside ever holds a file of the worker's.
// Output is read until every holder of a stream has closed it, or, where children
// live on, until OutputGrace after the program's end. A writer that doesn't take what
// it is given holds Exec up; one that fails gets nothing more, and its error is
// returned after the program's end. A Stdin that is an *os.File is handed to the
// program; any other is read by a goroutine that ends when the program has, or when a
// Read that is going on then returns.
func (s *Sandbox) Exec(ctx context.Context, cmd runtime.Command) (runtime.Exit, error) {
	if err := s.enter(); err != nil {
		return runtime.Exit{}, err
	}
	defer s.leave()
	if err := cmpErr(checkService(cmd.Service), checkUser(cmd.User)); err != nil {
		return runtime.Exit{}, err
	}
	ctx, unbind := s.bind(ctx)
	defer unbind()
	if ctx.Err() != nil {
		return runtime.Exit{}, context.Cause(ctx)
	}
	if err := s.alive(); err != nil {
		return runtime.Exit{}, err
	}
	p, err := s.prepare(cmd)
	if err != nil {
		return runtime.Exit{}, s.startError(cmd, err)
	}
	go p.run(&s.groups)
	return s.await(ctx, p)
}

// prepare resolves what the command names.
func (s *Sandbox) prepare(cmd runtime.Command) (*process, error) {
	if len(cmd.Argv) == 0 {
		return nil, &runtime.StartError{Argv: cmd.Argv, Err: errors.New("argv is empty")}
	}
	refuse := func(err error) (*process, error) { return nil, &runtime.StartError{Argv: cmd.Argv, Err: err} }
	dir, err := s.dir(cmd.Dir)
	if err != nil {
		return refuse(err)
	}
	mark := s.estate.Nonce + "." + strconv.FormatInt(s.serial.Add(1), 10)
	list, env, err := environ(s.env, cmd.Env, map[string]string{markVar: mark})
	if err != nil {
		return refuse(err)
	}
	if s.nest != nil {
		return s.prepareNested(cmd, dir, list, env["PATH"], mark), nil
	}
	program, err := nest.LookUp(cmd.Argv[0], env["PATH"], dir)
	if err != nil {
		return refuse(err)
	}
	return newProcess(program, cmd, dir, list, mark), nil
}

func (s *Sandbox) dir(dir string) (string, error) {
	work := s.Path(runtime.Workdir)
	switch {
	case dir == "":
		return work, nil
	case filepath.IsAbs(dir):
		return dir, nil
	case !filepath.IsLocal(dir):
		return "", &runtime.PathError{Path: dir, Reason: "leaves the workdir"}
	}
	return filepath.Join(work, dir), nil
}

// startError tells whose fault it is that a program couldn't be started: whoever
// removed the sandbox, ours when the machine has no room, else the task's.
func (s *Sandbox) startError(cmd runtime.Command, err error) error {
	if s.life.Err() != nil {
		return fmt.Errorf("sandbox %s: %w", s.estate.Name, context.Cause(s.life))
	}
	if lost := s.lostNest(err); errors.Is(lost, runtime.ErrLost) {
		return fmt.Errorf("sandbox %s: %w", s.estate.Name, lost)
	}
	if lost := s.alive(); errors.Is(lost, runtime.ErrLost) {
		return lost
	}
	if start := (*runtime.StartError)(nil); errors.As(err, &start) {
		return err
	}
	for _, ours := range []error{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.EIO, unix.ENOSYS} {
		if errors.Is(err, ours) {
			return fmt.Errorf("sandbox %s: start %q: %w", s.estate.Name, cmd.Argv[0], err)
		}
	}
	return &runtime.StartError{Argv: cmd.Argv, Err: err}
}

// A timer of a process that was stopped comes late, and with it what its programs did
// meanwhile. An agent that ended in time must not seem to have run out of it: whatever has
// happened gets a moment to be seen, and a longer one after a timer that is late.
const (
	seenIn   = 50 * time.Millisecond
	late     = 50 * time.Millisecond
	seenLate = time.Second
)

// toBeSeen is how long that moment is, after a wait of took for a timer of asked.
func toBeSeen(took, asked time.Duration) time.Duration {
	if took > asked+late {
		return seenLate
	}
	return seenIn
}

// await sees a process to its end.
func (s *Sandbox) await(ctx context.Context, p *process) (runtime.Exit, error) {
	began := time.Now()
	var elapsed <-chan time.Time
	if p.command.Timeout > 0 {
		timer := time.NewTimer(p.command.Timeout)
		defer timer.Stop()
		elapsed = timer.C
	}
	var timedOut bool
	var cause error
	select {
	case <-p.ended:
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-elapsed:
		timedOut = true
		p.awaitEnd(ctx, toBeSeen(time.Since(began), p.command.Timeout))
	}
	<-p.started
	if p.err != nil {
		return runtime.Exit{}, s.startError(p.command, p.err)
	}
	if p.hasEnded() { // it was quicker
		timedOut, cause = false, nil
	}
	var killErr error
	if timedOut || cause != nil {
		killErr = s.kill(ctx, p, timedOut)
		if !p.hasEnded() {
			p.abandon()
			return runtime.Exit{}, fmt.Errorf("sandbox %s: %w", s.estate.Name, errors.Join(killErr, cause))
		}
	}
	exit, err := p.finish(&s.groups, s.cfg.OutputGrace)
	if start := (*nest.StartError)(nil); errors.As(err, &start) {
		return s.notStarted(p.command, start)
	}
	if err != nil {
		err = fmt.Errorf("sandbox %s: %w", s.estate.Name, s.lostNest(err))
	}
	exit.TimedOut = timedOut
	if killErr != nil {
		killErr = fmt.Errorf("sandbox %s: %w", s.estate.Name, killErr)
	}
	if cause != nil || killErr != nil {
		return exit, errors.Join(cause, killErr)
	}
	if err == nil && !exit.OK() {
		err = s.fault(exit)
	}
	return exit, err
}

// fault tells whether a program failed because of us: whoever closes or removes a
// sandbox kills its programs first.
func (s *Sandbox) fault(exit runtime.Exit) error {
	if s.life.Err() != nil {
		return fmt.Errorf("sandbox %s: %w", s.estate.Name, context.Cause(s.life))
	}
	if lost := s.alive(); errors.Is(lost, runtime.ErrLost) {
		return lost
	}
	if s.nest != nil && exit.Signal == "SIGKILL" {
		if lost := s.aliveNest(); errors.Is(lost, runtime.ErrLost) {
			return lost
		}
	}
	return nil
}

// kill ends the command's group, and those of its descendants that left it.
func (s *Sandbox) kill(ctx context.Context, p *process, gently bool) error {
	if p.nested != nil {
		return s.killNested(ctx, p, gently)
	}
	if gently && s.cfg.KillGrace > 0 {
		_ = p.group.signal(unix.SIGTERM)
		p.awaitEnd(ctx, s.cfg.KillGrace)
	}
	p.group.kill()
	p.awaitEnd(context.WithoutCancel(ctx), s.cfg.KillTimeout)
	if !p.hasEnded() {
		return fmt.Errorf("process %d is alive although it was killed", p.group.id)
	}
	// The zero byte ends the entry: command 1 is not command 11.
	q := quarry{mark: markVar + "=" + p.mark + "\x00"}
	// Nobody has waited for the leader, so the group's number is still its own.
	return s.reap.end(context.WithoutCancel(ctx), q, nil, p.group.id)
}

func exitOfStatus(status syscall.WaitStatus) runtime.Exit {
	if !status.Signaled() {
		return runtime.Exit{Code: status.ExitStatus()}
	}
	name := unix.SignalName(status.Signal())
	if name == "" { // the real-time ones have no names
		name = "SIG" + strconv.Itoa(int(status.Signal()))
	}
	return runtime.Exit{Code: 128 + int(status.Signal()), Signal: name}
}
