// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// openDirFD opens a directory, through no symlink and into no other mount: a sandbox
// that runs as root may have bound the host's directories into its own.
func openDirFD(dir *os.File, name string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	how := unix.OpenHow{
		Flags:   flags,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	}
	for {
		fd, err := unix.Openat2(int(dir.Fd()), name, &how)
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			// An old kernel, or a container whose filter doesn't know the call. Bind mounts
			// of the same file system are not told apart then.
			return openDirSameDevice(dir, name)
		default:
			return -1, &fs.PathError{Op: "open", Path: filepath.Join(dir.Name(), name), Err: err}
		}
	}
}

// identityAt identifies an entry of a directory, or the directory itself by "". Without
// a directory, the name is an absolute path.
func identityAt(dir *os.File, name string) (identity, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	at, from := unix.AT_FDCWD, ""
	if dir != nil {
		at, from = int(dir.Fd()), dir.Name()
	}
	var st unix.Statx_t
	for {
		err := unix.Statx(at, name, flags, unix.STATX_INO|unix.STATX_BTIME, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return identity{}, &fs.PathError{Op: "stat", Path: filepath.Join(from, name), Err: err}
		}
		id := identity{Inode: st.Ino}
		if st.Mask&unix.STATX_BTIME != 0 {
			id.Birth = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
		}
		return id, nil
	}
}

// chmodAt changes the mode of a directory, not of what a symlink points at.
func chmodAt(dir *os.File, name string, mode uint32) error {
	fd, err := openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

// renameNew renames to a name that must not exist.
func renameNew(fromDir *os.File, from string, toDir *os.File, to string) error {
	err := unix.Renameat2(int(fromDir.Fd()), from, int(toDir.Fd()), to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// The file system can't do it in one step.
	if _, err := statAt(toDir, to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, unix.EEXIST)
	}
	return unix.Renameat(int(fromDir.Fd()), from, int(toDir.Fd()), to)
}
