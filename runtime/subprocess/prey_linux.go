// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// prey is a process that was found and is held by a pidfd, or, before Linux 5.3, only
// known by its number.
type prey struct{ pid, fd int }

func (p *prey) kill() {
	if p.fd < 0 {
		_ = unix.Kill(p.pid, unix.SIGKILL)
		return
	}
	_ = unix.PidfdSendSignal(p.fd, unix.SIGKILL, nil, 0)
}

// await returns when the process has ended, or ctx.
func (p *prey) await(ctx context.Context) {
	for ctx.Err() == nil {
		if p.fd < 0 {
			if errors.Is(unix.Kill(p.pid, 0), unix.ESRCH) {
				return
			}
			time.Sleep(time.Millisecond)
			return // a zombie can be signalled too; the next look tells
		}
		// Ends with an event; the timeout is only there to notice that ctx ended.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, 50)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (p *prey) close() {
	if p.fd >= 0 {
		unix.Close(p.fd)
	}
}
