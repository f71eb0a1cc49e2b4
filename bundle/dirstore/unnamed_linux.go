// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// openUnnamed makes a file on the file system of a directory that is in no directory.
func openUnnamed(dir string, mode uint32) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, mode)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return os.NewFile(uintptr(fd), dir), nil
}

// linkUnnamed gives such a file its name.
func linkUnnamed(f *os.File, to string) error {
	from := descriptorPath(f)
	if err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.LinkError{Op: "link", Old: from, New: to, Err: err}
	}
	return nil
}

func descriptorPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// setTimes sets access and modification of an open file, in nanoseconds.
func setTimes(f *os.File, to time.Time) error {
	now, err := unix.TimeToTimespec(to)
	if err != nil {
		return err
	}
	times := []unix.Timespec{now, now}
	err = unix.UtimesNanoAt(int(f.Fd()), "", times, unix.AT_EMPTY_PATH)
	if err != nil { // a kernel before 5.8, perhaps
		err = unix.UtimesNanoAt(unix.AT_FDCWD, descriptorPath(f), times, 0)
	}
	if err != nil {
		return &os.PathError{Op: "chtimes", Path: f.Name(), Err: err}
	}
	return nil
}
