// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openDirFD opens a directory, through no symlink and into no other file system.
func openDirFD(dir *os.File, name string) (int, error) { return openDirSameDevice(dir, name) }

// identityAt identifies an entry of a directory, or the directory itself by "". Without
// a directory, the name is an absolute path.
func identityAt(dir *os.File, name string) (identity, error) {
	var st unix.Stat_t
	var err error
	at, from := unix.AT_FDCWD, ""
	if dir != nil {
		at, from = int(dir.Fd()), dir.Name()
	}
	if name == "" {
		err = unix.Fstat(at, &st)
	} else {
		err = unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return identity{}, &fs.PathError{Op: "stat", Path: filepath.Join(from, name), Err: err}
	}
	return identity{Inode: st.Ino, Birth: st.Btim.Nano()}, nil
}

// chmodAt changes the mode of a directory, not of what a symlink points at.
func chmodAt(dir *os.File, name string, mode uint32) error {
	return unix.Fchmodat(int(dir.Fd()), name, mode, unix.AT_SYMLINK_NOFOLLOW)
}

// renameNew renames to a name that must not exist.
func renameNew(fromDir *os.File, from string, toDir *os.File, to string) error {
	return unix.RenameatxNp(int(fromDir.Fd()), from, int(toDir.Fd()), to, unix.RENAME_EXCL)
}
