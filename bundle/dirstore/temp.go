// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

// leftoverAge is how long nobody must have written to a file in .tmp before it counts
// as left behind by a crash.
const leftoverAge = 24 * time.Hour

var buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// writeTemp writes what r gives to a file in .tmp and brings it to disk. The caller
// moves it to its place or removes it.
func (s *Store) writeTemp(ctx context.Context, r io.Reader, size int64) (tmp string, v bundle.Version, err error) {
	path := filepath.Join(s.root, tempDir, strconv.Itoa(os.Getpid())+"-"+bundle.NewNonce())
	// Mode 666 less the umask, as any program would: os.CreateTemp's 600 would stay
	// with the object for ever.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return "", "", err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(path) // the error that matters is err
		}
	}()
	if v, err = fill(ctx, f, r, size); err != nil {
		return "", "", errors.Join(err, f.Close())
	}
	return path, v, f.Close()
}

func fill(ctx context.Context, f *os.File, r io.Reader, size int64) (bundle.Version, error) {
	buf := buffers.Get().(*[128 << 10]byte)
	defer buffers.Put(buf)
	if size >= 0 {
		// One more would show that there is more.
		r = io.LimitReader(r, size+1)
	}
	// Only Read and Write are offered, so that the buffer is used and the context
	// looked at.
	n, err := io.CopyBuffer(struct{ io.Writer }{f}, ctxReader{ctx, r}, buf[:])
	if err != nil {
		return "", err
	}
	if size >= 0 && n > size {
		return "", fmt.Errorf("the reader gave more than the %d bytes that were announced", size)
	}
	if size >= 0 && n < size {
		return "", fmt.Errorf("the reader gave %d bytes, want %d", n, size)
	}
	now := time.Now()
	if err := os.Chtimes(f.Name(), now, now); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	return version(info), nil
}

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
	path, _, err := s.writeTemp(context.Background(), io.LimitReader(zeros{}, block), block)
	if err != nil {
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
	dir := filepath.Join(s.root, tempDir)
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
