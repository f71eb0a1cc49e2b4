// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"

	"golang.org/x/sys/unix"
)

// listing is where a directory is being read. The kernel remembers that itself.
type listing struct{}

func (listing) close(fd int) error { return unix.Close(fd) }

func (listing) rewind(fd int) error {
	_, err := unix.Seek(fd, 0, 0)
	return err
}

func (listing) names(fd, atLeast int) (names []string, more bool, err error) {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	for {
		n, err := unix.Getdents(fd, *b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return names, false, err
		}
		_, _, names = unix.ParseDirent((*b)[:n], -1, names)
		if len(names) >= atLeast {
			return names, true, nil
		}
	}
}
