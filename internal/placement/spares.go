// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// Spares are files that were needed for a while, kept for others to be written into: see
// the package for what it costs to remove one and make the next. They are for files that
// only this process writes, and that all have the same mode.
type Spares struct {
	dir string
	max int

	mu    sync.Mutex
	names []string // in dir
	last  int
}

// NewSpares keeps at most so many in a directory, on the file system of those that it is
// asked for. It begins with none, whatever was left there.
func NewSpares(dir string, most int) (*Spares, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	return &Spares{dir: dir, max: most}, os.Mkdir(dir, 0o700)
}

// Lay puts an empty file at a path where there is none, and reports whether it had one. It
// need not be cut off again: ext4 would bring to disk at once what is then written to it.
func (s *Spares) Lay(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) == 0 {
		return false
	}
	name := s.names[len(s.names)-1]
	if os.Rename(filepath.Join(s.dir, name), path) != nil {
		return false
	}
	s.names = s.names[:len(s.names)-1]
	return true
}

// Drop takes away the file at a path, if there is one.
func (s *Spares) Drop(path string) {
	if !s.keep(path) {
		_ = os.Remove(path)
	}
}

func (s *Spares) keep(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) >= s.max {
		return false
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil || f.Close() != nil {
		return false
	}
	name := strconv.Itoa(s.last + 1)
	if os.Rename(path, filepath.Join(s.dir, name)) != nil {
		return false
	}
	s.last++
	s.names = append(s.names, name)
	return true
}

// Close removes them. Nothing is kept from now on.
func (s *Spares) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.max, s.names = 0, nil
	return os.RemoveAll(s.dir)
}
