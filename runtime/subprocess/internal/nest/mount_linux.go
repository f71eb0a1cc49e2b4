// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// cloneTree makes a detached copy of what is mounted at a path. In a user namespace a
// tree can only be copied whole.
func cloneTree(path string) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("clone %s: %w", path, err)
	}
	return fd, nil
}

func attachTree(fd int, path string) error {
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", path, err)
	}
	return nil
}

func setAttr(dir int, path string, attr uint64, flags uint) error {
	return unix.MountSetattr(dir, path, flags, &unix.MountAttr{Attr_set: attr})
}

// emptyOn mounts an empty file system on a directory.
func emptyOn(path, options string) error {
	return unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,"+options)
}

// makePoint makes a place to mount a tree on: a directory, or a file for a file.
func makePoint(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("mount %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(path, 0o755)
	}
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return makeFile(path, 0o644)
}

// makeFile makes an empty file without opening it: a child that another thread is just
// forking would have a copy of the descriptor, and the file system couldn't be made
// read-only.
func makeFile(path string, mode uint32) error {
	if err := unix.Mknod(path, unix.S_IFREG|mode, 0); err != nil {
		return &fs.PathError{Op: "make", Path: path, Err: err}
	}
	return nil
}

// nothing is an empty file in the view, to put over others.
const nothing = "/dev/nothing"

// cover puts nothing over a file. One that isn't there needs none.
func cover(path string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, nothing, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("cover %s: %w", path, err)
	}
	defer unix.Close(fd)
	// It is the same file in all nests: nobody leaves a message in it.
	if err := setAttr(fd, "", sealed, unix.AT_EMPTY_PATH); err != nil {
		return fmt.Errorf("cover %s: %w", path, err)
	}
	if err := attachTree(fd, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cover %s: %w", path, err)
	}
	return nil
}

// devices are what an ordinary program expects in /dev.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// cloneDevices takes the nodes from the host's /dev, because in a user namespace there
// is no way to make them.
func (b *builder) cloneDevices() (map[string]int, error) {
	nodes := map[string]int{}
	for _, name := range devices {
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/dev/"+name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("clone /dev/%s: %w", name, err)
		}
		b.fds = append(b.fds, fd)
		// That a device is on a read-only file system doesn't keep anybody from writing to
		// it, only from changing its mode, which would be the host's.
		if err := setAttr(fd, "", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID, unix.AT_EMPTY_PATH); err != nil {
			return nil, fmt.Errorf("protect /dev/%s: %w", name, err)
		}
		nodes[name] = fd
	}
	return nodes, nil
}

func (b *builder) makeDev(nodes map[string]int) error {
	if err := emptyOn("/dev", "size=1m"); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	b.hidden = append(b.hidden, "/dev")
	for name, fd := range nodes {
		if err := b.attach(fd, "/dev/"+name); err != nil {
			return err
		}
	}
	if err := makeFile(nothing, 0); err != nil {
		return err
	}
	for _, dir := range []string{"pts", "shm"} {
		if err := os.Mkdir("/dev/"+dir, 0o755); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd",
		"stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, "/dev/"+name); err != nil {
			return err
		}
	}
	return nil
}
