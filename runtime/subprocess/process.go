// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	goruntime "runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// process is one command that runs.
type process struct {
	command runtime.Command
	program string // its path; empty where the nest looks for it
	dir     string
	env     []string
	mark    string
	streams streams
	pid     int
	pidfd   int
	nested  *nested // nil where it is started plainly

	started chan struct{} // closed when group and err are set
	ended   chan struct{} // closed when the program has ended, before it is waited for
	group   *group        // nil where it couldn't be started
	err     error         // why
}

func newProcess(program string, command runtime.Command, dir string, env []string, mark string) *process {
	return &process{
		command: command, program: program, dir: dir, env: env, mark: mark, pidfd: -1,
		started: make(chan struct{}), ended: make(chan struct{}),
	}
}

// run starts the program and returns when it has ended. It needs a goroutine of its
// own: the parent death signal comes when the thread ends that started the program,
// so this one is kept for as long. To wait in a system call, and not for the poller,
// saves a thread that wakes another one up.
func (p *process) run(all *groups) {
	defer close(p.ended)
	if p.nested != nil {
		p.runNested()
		return
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread() // before ended is closed
	p.err = p.start()
	if p.err != nil {
		close(p.started)
		return
	}
	p.group = newGroup(p.pid, p.pidfd)
	all.add(p.group)
	p.streams.serve(p.command)
	close(p.started)
	p.group.awaitLeader()
}

// start does without package os/exec, and with it without a second descriptor of the
// process: the group has one.
func (p *process) start() error {
	for attempt := 0; ; attempt++ {
		files, err := p.streams.open(p.command)
		if err != nil {
			return fmt.Errorf("make pipes: %w", err)
		}
		how := &syscall.ProcAttr{
			Dir: p.dir, Env: p.env, Sys: sysProcAttr(&p.pidfd),
			Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])},
		}
		p.pid, err = syscall.ForkExec(p.program, p.command.Argv, how)
		p.streams.closeTheirs()
		if err == nil {
			return nil
		}
		p.streams.closeOurs()
		// A file that was just written can't be executed while a child, which another
		// goroutine is forking, has a copy of the descriptor that it was written with.
		if !errors.Is(err, unix.ETXTBSY) || attempt == 10 {
			return &fs.PathError{Op: "fork/exec", Path: p.program, Err: err}
		}
		time.Sleep(time.Millisecond << attempt)
	}
}

// reap waits for the program, which frees its number.
func (p *process) reap() (runtime.Exit, error) {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.pid, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return runtime.Exit{Code: -1}, os.NewSyscallError("wait", err)
		default:
			return exitOfStatus(status), nil
		}
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
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
	case <-p.ended:
	case <-ctx.Done():
	case <-timer.C:
	}
}

// finish waits for the program that has ended and returns when its streams are read.
func (p *process) finish(all *groups, grace time.Duration) (runtime.Exit, error) {
	if p.nested != nil {
		return p.finishNested(grace)
	}
	exit, err := p.reap()
	all.reaped(p.group)
	return exit, errors.Join(err, p.streams.finish(grace))
}

// abandon gives up a program that doesn't die of SIGKILL, because it hangs in the
// kernel. When it ends after all somebody has to wait for it.
func (p *process) abandon() {
	p.streams.closeOurs()
	if p.nested != nil {
		return // the nest waits for it
	}
	go func() {
		<-p.ended
		_, _ = p.reap()
	}()
}
