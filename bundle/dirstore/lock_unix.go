// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package dirstore

import (
	"errors"

	"golang.org/x/sys/unix"
)

// shards is how many locks there are: here it is the file as a whole.
const shards = 1

// set locks or unlocks the file.
func (l *locks) set(_ int64, kind int16) error {
	how := unix.LOCK_EX | unix.LOCK_NB
	if kind == unix.F_UNLCK {
		how = unix.LOCK_UN
	}
	raw, err := l.file.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = raw.Control(func(fd uintptr) { lockErr = unix.Flock(int(fd), how) })
	return errors.Join(err, lockErr)
}
