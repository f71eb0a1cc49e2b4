// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"fmt"
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
	if err := unix.Mkdirat(root.fd, base, 0o755); err != nil {
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

// isOf tells whether an open directory is as if it had just been made.
func (f fitness) isOf(dir *directory) (bool, error) {
	got, err := fitnessOf(dir)
	if err != nil || got != f {
		return false, err
	}
	// No access list, no capability, no label.
	if n, err := unix.Flistxattr(dir.fd, nil); n > 0 || err != nil && !errors.Is(err, unix.ENOTSUP) {
		return false, err
	}
	return dir.isEmpty()
}

// mend gives an open directory the mode that it should have, and tells whether it may be
// fit then.
func (f fitness) mend(dir *directory) bool {
	var st unix.Stat_t
	if unix.Fstat(dir.fd, &st) != nil {
		return false
	}
	got := statFitness(&st)
	got.flags = f.flags
	if got.mode != f.mode && unix.Fchmod(dir.fd, f.mode&0o7777) == nil {
		got.mode = f.mode
	}
	return got == f
}

func fitnessOf(dir *directory) (fitness, error) {
	var st unix.Stat_t
	if err := unix.Fstat(dir.fd, &st); err != nil {
		return fitness{}, err
	}
	f := statFitness(&st)
	flags, err := unix.IoctlGetInt(dir.fd, unix.FS_IOC_GETFLAGS)
	if err == nil {
		f.flags = flags // else the file system has none
	}
	return f, nil
}

func statFitness(st *unix.Stat_t) fitness {
	return fitness{
		dev: uint64(st.Dev), uid: st.Uid, gid: st.Gid, mode: st.Mode, links: uint64(st.Nlink), size: st.Size,
	}
}

// renewAt gives an entry the times of something new.
func renewAt(dir *directory, name string) error {
	now := unix.Timespec{Nsec: unix.UTIME_NOW}
	return unix.UtimesNanoAt(dir.fd, name, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
}
