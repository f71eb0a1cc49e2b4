// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// killHere kills a process of this machine if it is one of the container's, and is content
// with one that has ended. The handle is taken before the look, so that the id can't become
// another process in between.
func killHere(pid int, id string) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return true
	}
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	group, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if os.IsNotExist(err) || errors.Is(err, unix.ESRCH) {
		return true
	}
	if err != nil || !bytes.Contains(group, []byte(id)) {
		return hasEnded(fd) // the kernel takes such a one out of its group
	}
	err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	return err == nil || errors.Is(err, unix.ESRCH)
}

// hasEnded tells whether a process has ended and perhaps waits to be reaped: its handle is
// then ready to be read.
func hasEnded(fd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n == 1
}

// fullHere reports whether the disk at a directory of a container is full, by a process of
// this machine that is in the container. Programs inside may have put something else
// there: links are not followed.
func fullHere(pid int, id, dir string) bool {
	proc := "/proc/" + strconv.Itoa(pid)
	root, err := unix.Open(proc+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(root)
	// After the handle was taken: the id may have become another process before.
	if group, err := os.ReadFile(proc + "/cgroup"); err != nil || !bytes.Contains(group, []byte(id)) {
		return false
	}
	fd, err := unix.Openat2(root, strings.TrimPrefix(dir, "/"), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Statfs_t
	err = unix.Fstatfs(fd, &st)
	return err == nil && (st.Bavail == 0 || st.Files > 0 && st.Ffree == 0)
}
