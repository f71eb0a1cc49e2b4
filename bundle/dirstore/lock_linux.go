// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"errors"

	"golang.org/x/sys/unix"
)

// shards is how many locks there are: each is a byte of the file.
const shards = 64

// set locks or unlocks a byte for this opening of the file. (The older kind of lock
// belongs to the process, which loses it when it closes any opening.)
func (l *locks) set(n int64, kind int16) error {
	raw, err := l.file.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = raw.Control(func(fd uintptr) {
		lockErr = unix.FcntlFlock(fd, unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: n, Len: 1})
	})
	return errors.Join(err, lockErr)
}
