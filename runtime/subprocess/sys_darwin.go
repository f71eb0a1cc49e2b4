// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openDirAt opens a directory, through no symlink and into no other file system.
func openDirAt(dir *os.File, name string) (*os.File, error) {
	fd, err := openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name))
	var parent, child unix.Stat_t
	err = unix.Fstat(int(dir.Fd()), &parent)
	if err == nil {
		err = unix.Fstat(fd, &child)
	}
	if err == nil && parent.Dev != child.Dev {
		err = unix.EXDEV
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: f.Name(), Err: err}
	}
	return f, nil
}

// identityAt identifies an entry of a directory, or the directory itself by "".
func identityAt(dir *os.File, name string) (identity, error) {
	var st unix.Stat_t
	var err error
	if name == "" {
		err = unix.Fstat(int(dir.Fd()), &st)
	} else {
		err = unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return identity{}, &fs.PathError{Op: "stat", Path: filepath.Join(dir.Name(), name), Err: err}
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
