// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/tidemill/tidemill/bundle"
)

const (
	tempDir  = ".tmp"
	lockFile = ".lock"
)

// Options configures a store.
type Options struct {
	// ReadOnly opens a directory that must be there, and changes nothing in it: calls
	// that write get [bundle.ErrDenied].
	ReadOnly bool
}

// Store is a bundle store in a directory. Any number of processes may have it open.
type Store struct {
	root     string
	readOnly bool
	// coarse: the file system doesn't keep times that tell versions apart.
	coarse bool
	// unnamed: files can be written first and named afterwards.
	unnamed bool
	dirs    *directories
	locks   *locks // nil when read-only
}

var _ bundle.Store = (*Store)(nil)

// Open opens the store in a directory, and makes the directory if there is none. It
// writes a little and reads it back, so that a directory that can't be written to, or
// is on a full disk, is refused here and not when the first trial ends.
func Open(root string, opts Options) (*Store, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{root: abs, readOnly: opts.ReadOnly, dirs: newDirectories(abs)}
	if err := s.open(); err != nil {
		_ = s.Close() // what was opened so far
		return nil, fmt.Errorf("open store %s: %w", abs, err)
	}
	return s, nil
}

func (s *Store) open() error {
	info, err := os.Stat(s.root)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("it is a file, want a directory")
	case s.readOnly && errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no such directory: %w", bundle.ErrNotFound)
	case s.readOnly:
		return condition(err)
	}
	if err := makeRoot(s.root); err != nil {
		return condition(err)
	}
	if err := os.Mkdir(filepath.Join(s.root, tempDir), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return condition(err)
	}
	if s.locks, err = openLocks(filepath.Join(s.root, lockFile)); err != nil {
		return condition(err)
	}
	s.unnamed = s.canUnnamed()
	if s.coarse, err = s.probe(); err != nil {
		return fmt.Errorf("it can't be written to: %w", condition(err))
	}
	return condition(s.removeLeftovers())
}

// URL implements [bundle.Store].
func (s *Store) URL() string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(s.root)}).String()
}

// Close implements [bundle.Store]. Nothing can be replaced or deleted afterwards.
func (s *Store) Close() error {
	if s.locks == nil {
		return nil
	}
	return s.locks.close()
}

// path returns where an object stands, unless the call must not have any effect.
func (s *Store) path(ctx context.Context, key string) (string, error) {
	if err := check(ctx, key); err != nil {
		return "", err
	}
	return filepath.Join(s.root, bundle.LocalPath(key)), nil
}

// writable is path for calls that change something.
func (s *Store) writable(ctx context.Context, key string) (string, error) {
	path, err := s.path(ctx, key)
	if err == nil && s.readOnly {
		return "", denied(key)
	}
	return path, err
}

func check(ctx context.Context, key string) error {
	if err := bundle.CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func denied(key string) error {
	return fmt.Errorf("%s: the store was opened for reading only: %w", key, bundle.ErrDenied)
}
