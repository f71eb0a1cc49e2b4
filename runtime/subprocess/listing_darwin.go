// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"io"
	"math"
	"os"
)

// listing is where a directory is being read: the system's library does that, and the
// standard library has it.
type listing struct{ file *os.File }

func (l *listing) close(fd int) error { return l.open(fd).Close() }

func (l *listing) open(fd int) *os.File {
	if l.file == nil {
		l.file = os.NewFile(uintptr(fd), "") // it has the descriptor from now on
	}
	return l.file
}

func (l *listing) rewind(fd int) error {
	_, err := l.open(fd).Seek(0, io.SeekStart)
	return err
}

func (l *listing) names(fd, atLeast int) (names []string, more bool, err error) {
	if atLeast == math.MaxInt {
		atLeast = -1
	}
	names, err = l.open(fd).Readdirnames(atLeast)
	if errors.Is(err, io.EOF) {
		return names, false, nil
	}
	return names, err == nil && atLeast > 0, err
}
