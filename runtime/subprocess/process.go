// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// process is one command that runs.
type process struct {
	cmd     *exec.Cmd
	command runtime.Command
	mark    string
	streams streams
	pidfd   int
	group   *group
	exited  chan struct{} // closed when the program has ended, before it is waited for
}

func newProcess(program string, command runtime.Command, dir string, env []string, mark string) *process {
	p := &process{command: command, mark: mark, pidfd: -1, exited: make(chan struct{})}
	p.cmd = &exec.Cmd{Path: program, Args: command.Argv, Env: env, Dir: dir}
	p.cmd.SysProcAttr = sysProcAttr(&p.pidfd)
	return p
}

// start starts the program and what serves its streams.
func (p *process) start(all *groups) error {
	for attempt := 0; ; attempt++ {
		if err := p.streams.open(p.cmd, p.command); err != nil {
			return fmt.Errorf("make pipes: %w", err)
		}
		err := p.fork()
		p.streams.closeTheirs()
		if err == nil {
			break
		}
		p.streams.closeOurs()
		// A file that was just written can't be executed while a child, which another
		// goroutine is forking, has a copy of the descriptor that it was written with.
		if !errors.Is(err, unix.ETXTBSY) || attempt == 10 {
			return err
		}
		time.Sleep(time.Millisecond << attempt)
		cmd := p.cmd
		p.cmd = &exec.Cmd{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, SysProcAttr: cmd.SysProcAttr}
	}
	all.add(p.group)
	p.streams.serve(p.command)
	return nil
}

// fork starts the program from a thread that lives as long as it does: the parent
// death signal comes when the parent's thread ends, not the parent.
func (p *process) fork() error {
	started := make(chan error, 1)
	go func() {
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		if err := p.cmd.Start(); err != nil {
			started <- err
			return
		}
		p.group = newGroup(p.cmd.Process.Pid, p.pidfd)
		started <- nil
		p.group.awaitLeader()
		close(p.exited)
	}()
	return <-started
}

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// awaitEnd waits for the program, but not for ever.
func (p *process) awaitEnd(ctx context.Context, patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-ctx.Done():
	case <-timer.C:
	}
}

// finish waits for the program that has ended and returns when its streams are read.
func (p *process) finish(all *groups, grace time.Duration) (*os.ProcessState, error) {
	waitErr := p.cmd.Wait()
	all.reaped(p.group)
	if exitErr := (*exec.ExitError)(nil); errors.As(waitErr, &exitErr) {
		waitErr = nil
	}
	return p.cmd.ProcessState, errors.Join(waitErr, p.streams.finish(grace))
}

// abandon gives up a program that doesn't die of SIGKILL, because it hangs in the
// kernel. When it ends after all somebody has to wait for it.
func (p *process) abandon() {
	p.streams.closeOurs()
	go func() {
		<-p.exited
		_ = p.cmd.Wait()
	}()
}
