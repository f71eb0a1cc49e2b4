// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Init tells a nest's init from any process that gets its number later. It may be
// written down: whoever reads it can kill a nest whose warden doesn't answer, or that
// is another's.
type Init struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // since boot, in the kernel's ticks
	Boot  string `json:"boot"`
}

var bootID = sync.OnceValue(func() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(data))
})

func identify(pid int) (Init, error) {
	data, err := readStat("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Init{}, fmt.Errorf("init of the nest: %w", err)
	}
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(f) < 20 {
		return Init{}, fmt.Errorf("init of the nest: /proc/%d/stat has %d fields", pid, len(f))
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return Init{}, fmt.Errorf("init of the nest: %w", err)
	}
	return Init{PID: pid, Start: start, Boot: bootID()}, nil
}

// readStat reads a file of one line with one call, which is how the kernel gives it, and
// without asking for more than that: it is done for each nest.
func readStat(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	data := make([]byte, 4096)
	n, err := unix.Read(fd, data)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data[:n], nil
}

// Kill kills the nest of this init, if it is alive, and returns when all of it is dead.
func (i Init) Kill(ctx context.Context) error {
	if i.PID <= 1 || i.Boot != bootID() {
		return nil
	}
	fd, err := unix.PidfdOpen(i.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("init of the nest: %w", err)
	}
	defer unix.Close(fd)
	// What is held now can't change any more; is it what was written down?
	if now, err := identify(i.PID); err != nil || now != i {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return fmt.Errorf("kill the nest: %w", err)
	}
	for ctx.Err() == nil {
		// Ends with an event; the timeout is there to notice that ctx ended.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 50)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return nil
		}
	}
	return fmt.Errorf("the nest's init %d is alive although it was killed: %w", i.PID, context.Cause(ctx))
}
