// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Resize changes the limits on disk and memory that the nest was opened with; zero leaves
// one as it is. A limit that less than what is in use would fit under stays larger.
func (n *Nest) Resize(ctx context.Context, disk, memory int64) error {
	// What is changed needs privileges that the nest's own thread gave up.
	spec := Spec{Name: n.name, Disk: disk, Memory: memory}
	var fds []int
	if disk > 0 && len(n.dirs) > 0 {
		fds = append(fds, int(n.dirs[0].Fd()))
	}
	if _, err := ask(ctx, n.warden.sock, &n.warden.sending, request{Op: opResize, Spec: &spec}, nil, fds...); err != nil {
		return fmt.Errorf("resize: %w", err)
	}
	return nil
}

// resize does it in the warden, on a thread that ends with it; fds has a directory of the
// nest's disk, if it has one.
func (o *office) resize(spec Spec, fds []int) error {
	goruntime.LockOSThread()
	var errs []error
	if len(fds) > 0 {
		errs = append(errs, resizeTmpfs(fds[0], spec.Disk))
	}
	if spec.Memory > 0 {
		errs = append(errs, o.groups.setMemory(spec.Name, spec.Memory))
	}
	return errors.Join(errs...)
}

// resizeTmpfs changes what newTmpfs was given. dir is where it is mounted, or part of it.
func resizeTmpfs(dir int, size int64) error {
	// Without root the kernel wants mounts that are our user namespace's.
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("disk: unshare: %w", err)
	}
	fs, err := unix.Fspick(dir, "", unix.FSPICK_CLOEXEC|unix.FSPICK_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("disk: %w", err)
	}
	defer unix.Close(fs)
	for _, option := range tmpfsSize(size) {
		if err := unix.FsconfigSetString(fs, option[0], option[1]); err != nil {
			return fmt.Errorf("disk: %s: %w", option[0], err)
		}
	}
	if err := unix.FsconfigReconfigure(fs); err != nil && !errors.Is(err, unix.EINVAL) { // too small for what is in it
		return fmt.Errorf("disk: %w", err)
	}
	return nil
}

// setMemory changes the limit of a group that is there.
func (g groups) setMemory(name string, limit int64) error {
	value := []byte(strconv.FormatInt(limit, 10))
	if g.v2 != "" {
		return os.WriteFile(filepath.Join(groupDir(g.v2, name), "memory.max"), value, 0)
	}
	dir := groupDir(g.v1["memory"], name)
	// The limit on memory with swap is never the lower one, so which goes first depends on
	// the direction.
	files := []string{"memory.limit_in_bytes"}
	const swap = "memory.memsw.limit_in_bytes"
	if data, err := os.ReadFile(filepath.Join(dir, swap)); err == nil { // it may not be counted
		files = append(files, swap)
		if was, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && was < limit {
			slices.Reverse(files)
		}
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file), value, 0); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("memory: %w", err)
		}
	}
	return nil
}
