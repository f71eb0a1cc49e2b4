// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// killHere kills a process of this machine if it is one of the container's. The handle is
// taken before the look, so that the id can't become another process in between.
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
	if os.IsNotExist(err) {
		return true
	}
	if err != nil || !bytes.Contains(group, []byte(id)) {
		return false
	}
	err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	return err == nil || errors.Is(err, unix.ESRCH)
}
