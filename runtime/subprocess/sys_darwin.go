// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const utimeOmit = -2 // <sys/stat.h>

// openDirFD opens a directory, through no symlink and into no other file system.
func openDirFD(dir *directory, name string) (int, error) { return openDirSameDevice(dir, name) }

// openPath opens nothing: this system can't refuse the symlinks in a path.
func openPath(*directory, string) *directory { return nil }

// identityAt identifies an entry of a directory, or the directory itself by "". Without
// a directory, the name is an absolute path.
func identityAt(dir *directory, name string) (identity, error) {
	var st unix.Stat_t
	var err error
	at := unix.AT_FDCWD
	if dir != nil {
		at = dir.fd
	}
	if name == "" {
		err = unix.Fstat(at, &st)
	} else {
		err = unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		if dir != nil {
			name = dir.join(name)
		}
		return identity{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return identity{Inode: st.Ino, Birth: st.Btim.Nano()}, nil
}

// chmodAt changes the mode of a directory, not of what a symlink points at.
func chmodAt(dir *directory, name string, mode uint32) error {
	return unix.Fchmodat(dir.fd, name, mode, unix.AT_SYMLINK_NOFOLLOW)
}

// renameNew renames to a name that must not exist.
func renameNew(fromDir *directory, from string, toDir *directory, to string) error {
	return unix.RenameatxNp(fromDir.fd, from, toDir.fd, to, unix.RENAME_EXCL)
}

// pipe makes a pipe that no child inherits.
func pipe() (r, w int, err error) {
	var p [2]int
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := unix.Pipe(p[:]); err != nil {
		return -1, -1, os.NewSyscallError("pipe", err)
	}
	unix.CloseOnExec(p[0])
	unix.CloseOnExec(p[1])
	return p[0], p[1], nil
}
