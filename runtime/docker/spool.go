// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// spool holds a stream between the caller and the engine: the engine locks a container for
// as long as a copy lasts, so that nobody who is slow may be at the other end. What is
// small stays in memory; a larger one is a file that has no name.
type spool struct {
	dir  string
	mem  []byte
	file *os.File
	size int64
}

// spoolMem is how much stays in memory.
const spoolMem = 1 << 20

func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && len(s.mem)+len(p) > spoolMem {
		f, err := os.CreateTemp(s.dir, "copy-*")
		if err != nil {
			return 0, err
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil {
			return 0, err
		}
		if _, err := f.Write(s.mem); err != nil {
			return 0, err
		}
		s.mem = nil
	}
	if s.file == nil {
		s.mem = append(s.mem, p...)
		s.size += int64(len(p))
		return len(p), nil
	}
	n, err := s.file.Write(p)
	s.size += int64(n)
	return n, err
}

// section reads a part of what was written.
func (s *spool) section(from, n int64) io.Reader {
	var at io.ReaderAt = bytes.NewReader(s.mem)
	if s.file != nil {
		at = s.file
	}
	return io.NewSectionReader(at, from, n)
}

// reader reads all of what was written.
func (s *spool) reader() io.Reader { return s.section(0, s.size) }

func (s *spool) Close() error {
	if s == nil || s.file == nil {
		return nil
	}
	err := s.file.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
