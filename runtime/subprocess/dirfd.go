// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The functions here work on an open directory and the name of an entry in it, and
// never follow a symlink. os.Root keeps inside a tree, but goes through symlinks that
// stay inside; where a tree is read or removed, not even that is wanted.

// openDir opens a directory by its path. os.Open would try to make the poller watch it.
func openDir(path string) (*os.File, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

// openDirAt opens a directory of a directory; see openDirFD.
func openDirAt(dir *os.File, name string) (*os.File, error) {
	fd, err := openDirFD(dir, name)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name)), nil
}

// openDirSameDevice is openDirFD for systems that can't do better.
func openDirSameDevice(dir *os.File, name string) (int, error) {
	fd, err := openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, err
	}
	var parent, child unix.Stat_t
	err = cmpErr(unix.Fstat(int(dir.Fd()), &parent), unix.Fstat(fd, &child))
	if err == nil && parent.Dev != child.Dev {
		err = unix.EXDEV
	}
	if err != nil {
		unix.Close(fd)
		return -1, &fs.PathError{Op: "open", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	return fd, nil
}

// openFileAt opens a regular file for reading. A fifo or a device that took its place
// doesn't block, and is an error.
func openFileAt(dir *os.File, name string) (*os.File, error) {
	fd, err := openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name))
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func openat(dir *os.File, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_CLOEXEC, perm)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: filepath.Join(dir.Name(), name), Err: err}
		}
		return fd, nil
	}
}

// openForced opens a directory that its owner, who is our user, made unreadable.
func openForced(dir *os.File, name string) (*os.File, error) {
	sub, err := openDirAt(dir, name)
	if !errors.Is(err, fs.ErrPermission) || chmodAt(dir, name, 0o700) != nil {
		return sub, err
	}
	return openDirAt(dir, name)
}

func statAt(dir *os.File, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return st, &fs.PathError{Op: "stat", Path: filepath.Join(dir.Name(), name), Err: err}
		}
		return st, nil
	}
}

func kindOf(st unix.Stat_t) uint32 { return uint32(st.Mode) & unix.S_IFMT }

func readlinkAt(dir *os.File, name string) (string, error) {
	for size := 256; ; size *= 2 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(int(dir.Fd()), name, buf)
		if err != nil {
			return "", &fs.PathError{Op: "readlink", Path: filepath.Join(dir.Name(), name), Err: err}
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}

// isIdentity tells whether an entry is what it was. Without a directory, the name is
// an absolute path.
func isIdentity(dir *os.File, name string, want identity) (bool, error) {
	got, err := identityAt(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && got == want, err
}
