// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// On this system only process groups are known: a process that left its group is not
// found.

type group struct {
	id     int
	reaped bool
}

func sysProcAttr(*int) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func newGroup(pid, _ int) *group { return &group{id: pid} }

func (g *group) signal(sig unix.Signal) error { return unix.Kill(-g.id, sig) }

// EPERM is what this system says when there are only zombies.
func (g *group) populated() bool { return g.signal(0) == nil }

func (g *group) kill() bool { return g.signal(unix.SIGKILL) == nil }

func (g *group) close() {}

// awaitLeader returns when the leader has ended. It is not waited for yet, so that
// its number is still its own.
func (g *group) awaitLeader() {
	kq, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(kq)
	watch := unix.Kevent_t{Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}
	unix.SetKevent(&watch, g.id, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	for {
		n, err := unix.Kevent(kq, []unix.Kevent_t{watch}, make([]unix.Kevent_t, 1), nil)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) { // ESRCH: it has ended before
			return
		}
	}
}

type table struct{}

func newReaper(_ string, timeout time.Duration) *reaper {
	return &reaper{timeout: timeout, table: &table{}}
}

// find returns the groups that still have members as if they were processes.
func (t *table) find(_ quarry, groups []int) ([]*prey, error) {
	var found []*prey
	for _, id := range groups {
		if unix.Kill(-id, 0) == nil {
			found = append(found, &prey{pid: -id})
		}
	}
	return found, nil
}

type prey struct{ pid int }

func (p *prey) kill() { _ = unix.Kill(p.pid, unix.SIGKILL) }

func (p *prey) await(ctx context.Context) {
	for ctx.Err() == nil && unix.Kill(p.pid, 0) == nil {
		time.Sleep(time.Millisecond)
	}
}

func (p *prey) close() {}
