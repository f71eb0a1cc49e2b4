// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// leftoverAge is how long nobody must have written to a file in .tmp before it counts
// as left behind by a crash.
const leftoverAge = 24 * time.Hour

const bufferSize = 128 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// ctxReader ends with the context.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// probe shows that files can be written, and whether their times are kept well enough
// to be versions.
func (s *Store) probe() (coarse bool, err error) {
	const block = 4096 // so that a full disk says so
	d, err := s.draft(context.Background(), s.temp(), io.LimitReader(zeros{}, block), block)
	if err != nil {
		return false, err
	}
	defer d.discard()
	path := s.newName()
	if err := d.link(path); err != nil {
		return false, err
	}
	defer os.Remove(path)
	// Not long ago, or another process would take the file for a leftover.
	fine := time.Now().Truncate(time.Second).Add(123_456_789)
	if err := os.Chtimes(path, fine, fine); err != nil {
		return false, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return info.ModTime().Sub(fine).Abs() > time.Microsecond, nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// removeLeftovers deletes what crashed writers left in .tmp.
func (s *Store) removeLeftovers() error {
	dir := s.temp()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < leftoverAge {
			continue // gone, or somebody's
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
