// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// fitness is by what a directory differs from another empty one: a program could have
// changed each of these and left them to the next sandbox.
type fitness struct {
	dev      uint64
	uid, gid uint32
	mode     uint32
	links    uint64
	size     int64 // a directory that was large once stays so
	flags    int   // chattr
}

// open makes the directory for spares.
func (s *spares) open() error {
	if s.dir != nil {
		return nil
	}
	root, err := openDir(s.root)
	if err != nil {
		return err
	}
	defer root.Close()
	base := fmt.Sprint(os.Getpid(), spareInfix, runtime.NewName())
	if err := unix.Mkdirat(int(root.Fd()), base, 0o755); err != nil {
		return err
	}
	dir, err := openDirAt(root, base)
	if err != nil {
		return errors.Join(err, unlinkEmpty(root, base))
	}
	locked, err := lockSide(dir, unix.LOCK_EX)
	if err == nil && locked {
		s.like, err = fitnessOf(dir)
	}
	if err != nil || !locked {
		dir.Close()
		return errors.Join(err, unlinkEmpty(root, base), errors.ErrUnsupported)
	}
	s.dir, s.base = dir, base
	return nil
}

// isFit tells whether an entry is a directory as if it had just been made.
func (s *spares) isFit(in *os.File, name string) bool {
	dir, err := openDirAt(in, name)
	if err != nil {
		return false
	}
	defer dir.Close()
	if f, err := fitnessOf(dir); err != nil || f != s.like {
		return false
	}
	// No access list, no capability, no label.
	if n, err := unix.Flistxattr(int(dir.Fd()), nil); n > 0 || err != nil && !errors.Is(err, unix.ENOTSUP) {
		return false
	}
	_, err = dir.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

func fitnessOf(dir *os.File) (fitness, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return fitness{}, err
	}
	flags, err := unix.IoctlGetInt(int(dir.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		flags = 0 // the file system has none
	}
	return fitness{
		dev: uint64(st.Dev), uid: st.Uid, gid: st.Gid, mode: st.Mode, links: uint64(st.Nlink), size: st.Size, flags: flags,
	}, nil
}

// touchAt gives an entry the times of something new.
func touchAt(dir *os.File, name string) error {
	now := unix.Timespec{Nsec: unix.UTIME_NOW}
	return unix.UtimesNanoAt(int(dir.Fd()), name, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
}
