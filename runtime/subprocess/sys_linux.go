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

// openDirAt opens a directory, through no symlink and into no other mount: a
// sandbox that runs as root may have bound the host's directories into its own.
func openDirAt(dir *os.File, name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	how := unix.OpenHow{
		Flags:   flags,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	}
	path := filepath.Join(dir.Name(), name)
	for {
		fd, err := unix.Openat2(int(dir.Fd()), name, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			// An old kernel, or a container whose filter doesn't know the call. Bind mounts
			// of the same file system are not told apart then.
			return openDirOldAt(dir, name)
		default:
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

func openDirOldAt(dir *os.File, name string) (*os.File, error) {
	fd, err := openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name))
	var parent, child unix.Stat_t
	if err := errors.Join(unix.Fstat(int(dir.Fd()), &parent), unix.Fstat(fd, &child)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if parent.Dev != child.Dev {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: f.Name(), Err: unix.EXDEV}
	}
	return f, nil
}

// identityAt identifies an entry of a directory, or the directory itself by "".
func identityAt(dir *os.File, name string) (identity, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var st unix.Statx_t
	for {
		err := unix.Statx(int(dir.Fd()), name, flags, unix.STATX_INO|unix.STATX_BTIME, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return identity{}, &fs.PathError{Op: "stat", Path: filepath.Join(dir.Name(), name), Err: err}
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
	fd, err := openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY)
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
