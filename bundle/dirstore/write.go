// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tidemill/tidemill/bundle"
)

// placeTries is how often a directory may vanish under a write, because somebody
// deleted the last object in it, before that is an error.
const placeTries = 100

// Create implements [bundle.Store].
func (s *Store) Create(ctx context.Context, key string, body []byte) (bundle.Version, error) {
	path, err := s.writable(ctx, key)
	if err != nil {
		return "", err
	}
	v, err := s.create(ctx, path, body)
	if err != nil {
		return "", fmt.Errorf("create %s: %w", key, condition(err))
	}
	return v, nil
}

func (s *Store) create(ctx context.Context, path string, body []byte) (bundle.Version, error) {
	// Most that lose lose by far: save them the writing.
	if _, err := os.Lstat(path); err == nil {
		return "", taken(path)
	}
	dir := filepath.Dir(path)
	// For the file to be made there. Whether that can be is found out when it has its place.
	_ = s.dirs.ensure(dir)
	d, err := s.draft(ctx, dir, bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return "", err
	}
	defer d.discard()
	err = s.place(path, func() error { return d.link(path) })
	if errors.Is(err, fs.ErrExist) {
		return "", taken(path)
	}
	return d.version, err
}

// taken says that an object was there first. Who is told so relies on that object, so
// it is brought to disk, which its writer may not have come to yet.
func taken(path string) error {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%w: other keys continue it with a /", bundle.ErrInvalidKey)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return bundle.ErrExists
}

// Put implements [bundle.Store].
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	path, err := s.writable(ctx, key)
	if err != nil {
		return err
	}
	if err := s.put(ctx, key, path, r, size); err != nil {
		return fmt.Errorf("put %s: %w", key, condition(err))
	}
	return nil
}

func (s *Store) put(ctx context.Context, key, path string, r io.Reader, size int64) error {
	d, err := s.draft(ctx, filepath.Dir(path), r, size)
	if err != nil {
		return err
	}
	defer d.discard()
	return s.place(path, func() error {
		return s.locks.with(ctx, key, func() error { return d.replace(path) })
	})
}

// Swap implements [bundle.Store].
func (s *Store) Swap(ctx context.Context, key string, old bundle.Version, body []byte) (bundle.Version, error) {
	path, err := s.writable(ctx, key)
	if err != nil {
		return "", err
	}
	if s.coarse {
		return "", fmt.Errorf("swap %s: %w: the file system keeps times too coarsely to tell versions apart", key, errors.ErrUnsupported)
	}
	v, err := s.swap(ctx, key, path, old, body)
	if err != nil {
		return "", fmt.Errorf("swap %s: %w", key, condition(err))
	}
	return v, nil
}

func (s *Store) swap(ctx context.Context, key, path string, old bundle.Version, body []byte) (bundle.Version, error) {
	if err := unchanged(path, old); err != nil {
		return "", err // before anything is written; it counts below
	}
	d, err := s.draft(ctx, filepath.Dir(path), bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return "", err
	}
	defer d.discard()
	err = s.locks.with(ctx, key, func() error {
		if err := unchanged(path, old); err != nil {
			return err
		}
		return d.replace(path)
	})
	if err != nil {
		return "", err
	}
	return d.version, syncDir(filepath.Dir(path))
}

func unchanged(path string, old bundle.Version) error {
	info, err := os.Lstat(path)
	switch {
	case absent(err) || err == nil && (!info.Mode().IsRegular() || version(info) != old):
		return bundle.ErrChanged
	default:
		return err
	}
}

// place makes the object's directory, moves the object there and brings the directory
// to disk. It starts over when the directory is removed in between.
func (s *Store) place(path string, move func() error) error {
	dir := filepath.Dir(path)
	var err error
	for range placeTries {
		if err = s.dirs.ensure(dir); err == nil {
			err = move()
		}
		if err == nil {
			err = syncDir(dir)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		s.dirs.forget(dir)
	}
	return placeError(err)
}

// placeError says what it means that something can't have its place.
func placeError(err error) error {
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR) {
		return fmt.Errorf("%w: it continues another key with a /, or is continued by one: %w", bundle.ErrInvalidKey, err)
	}
	return err
}

// absent says whether an error means that there is no such file, be it that what
// should be its directory is a file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
