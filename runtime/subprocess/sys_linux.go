// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const utimeOmit = unix.UTIME_OMIT

var howDir = unix.OpenHow{
	Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
	Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
}

// openDirFD opens a directory, through no symlink and into no other mount: a sandbox
// that runs as root may have bound the host's directories into its own.
func openDirFD(dir *directory, name string) (int, error) {
	for {
		fd, err := unix.Openat2(dir.fd, name, &howDir)
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			// An old kernel, or a container whose filter doesn't know the call. Bind mounts
			// of the same file system are not told apart then.
			return openDirSameDevice(dir, name)
		default:
			return -1, &fs.PathError{Op: "open", Path: dir.join(name), Err: err}
		}
	}
}

// openPath opens what openWalk opens, in one step. Whoever gets nothing has to walk, and
// hears why.
func openPath(dir *directory, rel string) *directory {
	fd, err := unix.Openat2(dir.fd, rel, &howDir)
	if err != nil {
		return nil
	}
	return &directory{fd: fd, parent: dir, name: rel}
}

// identityAt identifies an entry of a directory, or the directory itself by "". Without
// a directory, the name is an absolute path.
func identityAt(dir *directory, name string) (identity, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	at := unix.AT_FDCWD
	if dir != nil {
		at = dir.fd
	}
	var st unix.Statx_t
	for {
		err := unix.Statx(at, name, flags, unix.STATX_INO|unix.STATX_BTIME, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			if dir != nil {
				name = dir.join(name)
			}
			return identity{}, &fs.PathError{Op: "stat", Path: name, Err: err}
		}
		id := identity{Inode: st.Ino}
		if st.Mask&unix.STATX_BTIME != 0 {
			id.Birth = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
		}
		return id, nil
	}
}

// chmodAt changes the mode of a directory, not of what a symlink points at.
func chmodAt(dir *directory, name string, mode uint32) error {
	fd, err := openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

// renameNew renames to a name that must not exist.
func renameNew(fromDir *directory, from string, toDir *directory, to string) error {
	err := unix.Renameat2(fromDir.fd, from, toDir.fd, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// The file system can't do it in one step.
	if _, err := statAt(toDir, to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, unix.EEXIST)
	}
	return unix.Renameat(fromDir.fd, from, toDir.fd, to)
}

// pipe makes a pipe that no child inherits.
func pipe() (r, w int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, os.NewSyscallError("pipe2", err)
	}
	return p[0], p[1], nil
}
