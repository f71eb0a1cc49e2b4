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
	pidfd  int // of the leader, -1 where the kernel has none
	reaped bool
}

func sysProcAttr(pidfd *int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setsid:    true, // also without a terminal of the worker's
		Pdeathsig: syscall.SIGKILL,
		PidFD:     pidfd,
	}
}

func newGroup(pid, pidfd int) *group { return &group{id: pid, pidfd: pidfd} }

// signal sends a signal to every member. A pidfd stays with the group of its process
// even when that was waited for and its number given to another one.
func (g *group) signal(sig unix.Signal) error {
	if g.pidfd >= 0 {
		err := unix.PidfdSendSignal(g.pidfd, sig, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP)
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
	if g.pidfd >= 0 {
		unix.Close(g.pidfd)
		g.pidfd = -1
	}
}

// awaitLeader returns when the leader has ended. It is not waited for yet, so that
// its number is still its own.
func (g *group) awaitLeader() {
	for errors.Is(unix.Waitid(unix.P_PID, g.id, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}
