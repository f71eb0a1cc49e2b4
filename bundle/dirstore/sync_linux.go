// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncPath brings what stands at a path to disk. An error of doing so that is harmless is
// none. It goes without an os.File, which would be offered to the poller first: that made
// eight system calls of these three, twenty times a trial.
func syncPath(path string, flags int, harmless func(error) bool) error {
	fd, err := retry(func() (int, error) { return unix.Open(path, flags|unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	if _, err = retry(func() (int, error) { return 0, unix.Fsync(fd) }); err != nil {
		err = &os.PathError{Op: "sync", Path: path, Err: err}
		if harmless(err) {
			err = nil
		}
	}
	if closeErr := unix.Close(fd); closeErr != nil {
		return errors.Join(err, &os.PathError{Op: "close", Path: path, Err: closeErr})
	}
	return err
}

// retry repeats a system call that a signal broke off.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
