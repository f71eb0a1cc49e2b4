// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is the process group of one command. Its id is its leader's process id.
type group struct {
	id     int
	pidfd  *os.File // of the leader, nil where the kernel has none
	raw    int      // its descriptor
	reaped bool
}

func sysProcAttr(pidfd *int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setsid:    true, // also without a terminal of the worker's
		Pdeathsig: syscall.SIGKILL,
		PidFD:     pidfd,
	}
}

func newGroup(pid, pidfd int) *group {
	g := &group{id: pid, raw: pidfd}
	if pidfd >= 0 {
		_ = unix.SetNonblock(pidfd, true) // so that waiting for it takes no thread
		g.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
	}
	return g
}

// signal sends a signal to every member. A pidfd stays with the group of its process
// even when that was waited for and its number given to another one.
func (g *group) signal(sig unix.Signal) error {
	if g.raw >= 0 {
		err := unix.PidfdSendSignal(g.raw, sig, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP)
		if !errors.Is(err, unix.EINVAL) { // Linux before 6.9
			return err
		}
	}
	if g.reaped {
		// As long as a group has members its number is given to no process. That one has
		// it means that the group is another one's.
		if _, err := os.Stat("/proc/" + strconv.Itoa(g.id)); err == nil {
			return unix.ESRCH
		}
	}
	return unix.Kill(-g.id, sig)
}

func (g *group) populated() bool { return !errors.Is(g.signal(0), unix.ESRCH) }

// kill returns whether there was somebody to kill, zombies included.
func (g *group) kill() bool { return !errors.Is(g.signal(unix.SIGKILL), unix.ESRCH) }

func (g *group) close() {
	if g.pidfd != nil {
		g.pidfd.Close()
		g.pidfd, g.raw = nil, -1
	}
}

// awaitLeader returns when the leader has ended. It is not waited for yet, so that
// its number is still its own.
func (g *group) awaitLeader() {
	if g.pidfd != nil {
		conn, err := g.pidfd.SyscallConn()
		if err == nil {
			err = conn.Read(func(fd uintptr) bool { return leaderEnded(unix.P_PIDFD, int(fd), unix.WNOHANG) })
		}
		if err == nil {
			return
		}
	}
	leaderEnded(unix.P_PID, g.id, 0)
}

func leaderEnded(by, id, options int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(by, id, &info, unix.WEXITED|unix.WNOWAIT|options, nil)
		if !errors.Is(err, unix.EINTR) {
			// The call succeeds without having found anything when told not to hang.
			return err != nil || info.Signo != 0
		}
	}
}
