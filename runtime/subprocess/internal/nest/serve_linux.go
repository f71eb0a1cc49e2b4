// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// proc is a command that runs.
type proc struct {
	id     uint64
	pid    int
	pidfd  int
	reply  int
	before counts
	killed bool // with its group
}

// serve does what the worker asks, and tells it of commands that ended, until the
// worker closes the nest. All of it happens on the nest's one thread: a process that
// is known here has not been waited for, so its number is its own.
func (t *tenant) serve() {
	for {
		watch := []unix.PollFd{{Fd: int32(t.sock), Events: unix.POLLIN}}
		if !t.lost {
			watch = append(watch, unix.PollFd{Fd: int32(t.init), Events: unix.POLLIN})
		}
		for fd := range t.procs {
			watch = append(watch, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
		if _, err := unix.Ppoll(watch, nil, nil); err != nil {
			continue // interrupted
		}
		for _, w := range watch[1:] {
			switch p := t.procs[int(w.Fd)]; {
			case w.Revents == 0:
			case p != nil:
				t.reap(p)
			default:
				t.lost = true // init died, and with it everybody
			}
		}
		if watch[0].Revents == 0 {
			continue
		}
		var req request
		fds, err := recvFrame(rawRecv(t.sock), &req)
		if err != nil {
			return
		}
		if len(fds) == 0 {
			continue
		}
		t.handle(req, fds[0], fds[1:])
	}
}

func (t *tenant) handle(req request, reply int, fds []int) {
	defer closeAll(fds)
	fail := func(err error) { answer(reply, response{Error: toWire(err)}) }
	if t.lost {
		fail(fmt.Errorf("%w: its init was killed from outside", ErrLost))
		return
	}
	switch {
	case req.Op == opRun && req.Run != nil && len(fds) == 3:
		p, err := t.start(*req.Run, fds)
		if err != nil {
			fail(err)
			return
		}
		p.reply = reply // answered when it ends
		t.procs[p.pidfd] = p
	case req.Op == opSignal:
		fail(t.signal(req.Command, syscall.Signal(req.Signal)))
	case req.Op == opEnd:
		fail(t.end())
	case req.Op == opSocket:
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			fail(err)
			return
		}
		answer(reply, response{}, fd)
		unix.Close(fd)
	case req.Op == opLook && req.Look != nil:
		answer(reply, response{Seen: look(*req.Look)})
	default:
		fail(fmt.Errorf("operation %q: there is none", req.Op))
	}
}

// start starts a command. It is a child of the warden, but in the nest: so its end is
// seen here, whatever its init does.
func (t *tenant) start(r runRequest, fds []int) (*proc, error) {
	if len(r.Argv) == 0 {
		return nil, &StartError{Err: errors.New("argv is empty")}
	}
	name := string(r.Argv[0])
	path, err := LookUp(name, string(r.Path), string(r.Dir))
	if err != nil {
		return nil, &StartError{Name: name, Err: err}
	}
	p := &proc{id: r.ID, before: t.group.counts()}
	fork := func() { err = t.fork(p, path, r, fds) }
	if r.Online && t.online != nil {
		t.online.do(fork)
	} else {
		fork()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// fork starts a program from the thread that runs this, which is what it inherits from.
func (t *tenant) fork(p *proc, path string, r runRequest, fds []int) (err error) {
	limits := limitsOf(r)
	// No parent death signal: init has one, which is enough, and the library's check
	// whether the parent is dead already is wrong about parents outside the namespace.
	attr := &syscall.SysProcAttr{
		Setsid: true, PidFD: &p.pidfd,
		Ptrace: len(limits) > 0, // so that it stops before its first instruction
	}
	t.group.spawn(attr)
	how := &syscall.ProcAttr{Dir: string(r.Dir), Env: fromBytes(r.Env), Sys: attr}
	how.Files = []uintptr{uintptr(fds[0]), uintptr(fds[1]), uintptr(fds[2])}
	for attempt := 0; ; attempt++ {
		p.pid, err = syscall.ForkExec(path, fromBytes(r.Argv), how)
		// A file that was just written can't be executed while a child that another thread
		// is forking has a copy of the descriptor that it was written with.
		if err != syscall.ETXTBSY || attempt == 10 {
			break
		}
		time.Sleep(time.Millisecond << attempt)
	}
	if err != nil {
		var st unix.Stat_t
		if dirErr := unix.Stat(how.Dir, &st); dirErr != nil {
			err = &fs.PathError{Op: "chdir", Path: how.Dir, Err: dirErr}
		}
		return &StartError{Name: string(r.Argv[0]), Err: err}
	}
	if len(limits) > 0 {
		if err := release(p.pid, limits); err != nil {
			_ = unix.Kill(p.pid, unix.SIGKILL)
			_, _ = unix.Wait4(p.pid, nil, 0, nil)
			unix.Close(p.pidfd)
			return fmt.Errorf("set limits of %q: %w", r.Argv[0], err)
		}
	}
	return nil
}

func limitsOf(r runRequest) map[int]int64 {
	limits := map[int]int64{}
	if r.OpenFiles > 0 {
		limits[unix.RLIMIT_NOFILE] = r.OpenFiles
	}
	if r.FileSize > 0 {
		limits[unix.RLIMIT_FSIZE] = r.FileSize
	}
	return limits
}

// release sets limits of a program that has stopped before its first instruction, and
// lets it go.
func release(pid int, limits map[int]int64) error {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	if !ws.Stopped() {
		return fmt.Errorf("it ended with status %#x before it began", int(ws))
	}
	for what, max := range limits {
		both := unix.Rlimit{Cur: uint64(max), Max: uint64(max)}
		if err := unix.Prlimit(pid, what, &both, nil); err != nil {
			return err
		}
	}
	return unix.PtraceDetach(pid)
}

// reap waits for a command that has ended and tells the worker.
func (t *tenant) reap(p *proc) {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(p.pid, &ws, 0, nil)
		if err != unix.EINTR {
			break
		}
	}
	delete(t.procs, p.pidfd)
	unix.Close(p.pidfd)
	if p.killed {
		awaitGroup(p.pid)
	}
	after := t.group.counts()
	answer(p.reply, response{Status: &Status{
		Wait: syscall.WaitStatus(ws), OOM: after.oom > p.before.oom, Pids: after.pids > p.before.pids, Full: t.full(),
	}})
}

// awaitGroup waits for the other members of a group that was killed: they die at the same
// time as their leader, but not in the same moment, and nobody is told when they have.
func awaitGroup(id int) {
	for wait := 50 * time.Microsecond; wait < time.Second; wait *= 2 {
		if unix.Kill(-id, 0) == unix.ESRCH {
			return
		}
		time.Sleep(wait)
	}
}

// full tells whether nothing more goes onto the disk.
func (t *tenant) full() bool {
	if t.disk < 0 {
		return false
	}
	var st unix.Statfs_t
	err := unix.Fstatfs(t.disk, &st)
	return err == nil && (st.Bavail == 0 || st.Ffree == 0)
}

func (t *tenant) signal(id uint64, sig syscall.Signal) error {
	for _, p := range t.procs {
		if p.id != id {
			continue
		}
		if err := unix.Kill(-p.pid, sig); err != nil && err != unix.ESRCH {
			return fmt.Errorf("signal command %d: %w", id, err)
		}
		p.killed = p.killed || sig == unix.SIGKILL
	}
	return nil
}

// end kills everybody but init and waits until nobody is left. A process that forks
// doesn't get away: the kernel gives the signal to all in one step, and a fork that is
// going on then fails.
func (t *tenant) end() error {
	for {
		switch err := t.tell(0); {
		case errors.Is(err, syscall.ESRCH):
			t.reapAll() // some may have been waiting to be
			return nil
		case err != nil:
			return err
		}
		if err := t.tell(int32(unix.SIGKILL)); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		t.reapAll()
		// Orphans are init's children, and gone when it has none.
		if err := t.tell(drain); !errors.Is(err, syscall.ECHILD) {
			return cmp.Or(err, errors.New("init has children for ever"))
		}
	}
}

func (t *tenant) reapAll() {
	for _, p := range t.procs {
		t.reap(p)
	}
}

// leave removes the nest; also one that is only half there.
func (t *tenant) leave() error {
	if t.online != nil {
		t.online.end()
	}
	if t.init >= 0 {
		// The end of init is the end of everybody, and it can be waited for only when
		// nobody else is left.
		_ = unix.PidfdSendSignal(t.init, unix.SIGKILL, nil, 0)
		t.reapAll()
		for {
			if _, err := unix.Wait4(t.pid, nil, 0, nil); err != unix.EINTR {
				break
			}
		}
		unix.Close(t.init)
	}
	for _, fd := range []int{t.talk, t.disk} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	return t.group.remove()
}
