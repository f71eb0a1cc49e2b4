// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// maxSocketPath is what every kernel takes as the path of a socket.
const maxSocketPath = 100

var errPathTooLong = errors.New("the path of the data directory is too long for a socket")

// openFiles is where a process finds its open files by number, on Linux.
const openFiles = "/proc/self/fd"

// socketAddr returns an address for the socket in a directory. A long path is reached
// through the open directory instead.
func socketAddr(dir string) (addr string, release func(), err error) {
	if direct := filepath.Join(dir, socketName); len(direct) <= maxSocketPath {
		return direct, func() {}, nil
	}
	if _, err := os.Stat(openFiles); err != nil {
		return "", nil, fmt.Errorf("%w: %s", errPathTooLong, dir)
	}
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(openFiles, strconv.Itoa(int(f.Fd())), socketName), func() { f.Close() }, nil
}
