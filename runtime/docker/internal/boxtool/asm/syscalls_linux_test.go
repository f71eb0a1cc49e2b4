// SPDX-License-Identifier: Apache-2.0

package asm

import (
	goruntime "runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel's own list is there for the architecture on which the test runs.
func TestSyscallNumbers(t *testing.T) {
	want := map[string]int64{
		"bind": unix.SYS_BIND, "close": unix.SYS_CLOSE, "connect": unix.SYS_CONNECT, "exit_group": unix.SYS_EXIT_GROUP,
		"getdents64": unix.SYS_GETDENTS64, "kill": unix.SYS_KILL, "listen": unix.SYS_LISTEN, "nanosleep": unix.SYS_NANOSLEEP,
		"openat": unix.SYS_OPENAT, "ppoll": unix.SYS_PPOLL, "recvfrom": unix.SYS_RECVFROM, "rt_sigaction": unix.SYS_RT_SIGACTION,
		"sendto": unix.SYS_SENDTO, "setsockopt": unix.SYS_SETSOCKOPT, "socket": unix.SYS_SOCKET, "unlinkat": unix.SYS_UNLINKAT,
		"write": unix.SYS_WRITE,
	}
	for name, n := range syscalls {
		got := map[string]int64{"amd64": n.AMD64, "arm64": n.ARM64}[goruntime.GOARCH]
		if got != want[name] {
			t.Errorf("%s: %d, want %d", name, got, want[name])
		}
	}
}
