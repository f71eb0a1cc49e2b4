// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/tidemill/tidemill/bundle"
)

// Get implements [bundle.Store].
func (s *Store) Get(ctx context.Context, key string) (io.ReadCloser, bundle.Info, error) {
	f, info, err := s.get(ctx, key)
	if err != nil {
		return nil, bundle.Info{}, err
	}
	return f, describe(key, info), nil
}

// GetRange implements [bundle.Store].
func (s *Store) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	f, _, err := s.get(ctx, key)
	if err != nil {
		return nil, err
	}
	if off < 0 || n < 0 {
		_ = f.Close()
		return nil, fmt.Errorf("get %s: range of %d bytes from %d, want none below 0", key, n, off)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, off, n), f}, nil
}

func (s *Store) get(ctx context.Context, key string) (*os.File, fs.FileInfo, error) {
	path, err := s.path(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	// Whatever a stranger puts here, a link isn't followed and a pipe isn't waited for.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if absent(err) {
		return nil, nil, fmt.Errorf("get %s: %w", key, bundle.ErrNotFound)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get %s: %w", key, condition(err))
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = bundle.ErrNotFound
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("get %s: %w", key, err)
	}
	return f, info, nil
}
