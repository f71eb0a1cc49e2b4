// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"os"
	"syscall"
)

// openFile is os.OpenFile for files that are regular ones for certain. That one would offer
// it to the poller first, which knows no such files: with the mode that is set for it and
// set back these are five system calls more than there need be.
func openFile(path string, flags int, mode uint32) (*os.File, error) {
	for {
		fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC, mode)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case !errors.Is(err, syscall.EINTR):
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}
