// SPDX-License-Identifier: Apache-2.0

// Package memstore is a bundle store in memory: for tests, and as the shortest way to
// see what a store has to do.
package memstore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

// Store holds objects until the process ends.
type Store struct {
	mu      sync.RWMutex
	objects map[string]object
	keys    index  // of the objects, in order
	writes  uint64 // counts up, so that no version comes twice
}

type object struct {
	body     []byte // never changed once it is here
	version  bundle.Version
	modified time.Time
}

var _ bundle.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{objects: map[string]object{}} }

// Create implements [bundle.Store].
func (s *Store) Create(ctx context.Context, key string, body []byte) (bundle.Version, error) {
	if err := admit(ctx, key); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.objects[key]; taken {
		return "", fmt.Errorf("create %s: %w", key, bundle.ErrExists)
	}
	return s.set(key, bytes.Clone(body)), nil
}

// Swap implements [bundle.Store].
func (s *Store) Swap(ctx context.Context, key string, old bundle.Version, body []byte) (bundle.Version, error) {
	if err := admit(ctx, key); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.objects[key]; !ok || o.version != old {
		return "", fmt.Errorf("swap %s: %w", key, bundle.ErrChanged)
	}
	return s.set(key, bytes.Clone(body)), nil
}

// Put implements [bundle.Store].
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := admit(ctx, key); err != nil {
		return err
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	if size >= 0 && int64(len(body)) != size {
		return fmt.Errorf("put %s: the reader gave %d bytes, want %d", key, len(body), size)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(key, body)
	return nil
}

// set takes the body over.
func (s *Store) set(key string, body []byte) bundle.Version {
	s.writes++
	v := bundle.Version(strconv.FormatUint(s.writes, 10))
	if _, known := s.objects[key]; !known {
		s.keys.add(key)
	}
	s.objects[key] = object{body: body, version: v, modified: time.Now()}
	return v
}

// Get implements [bundle.Store].
func (s *Store) Get(ctx context.Context, key string) (io.ReadCloser, bundle.Info, error) {
	o, err := s.get(ctx, key)
	if err != nil {
		return nil, bundle.Info{}, err
	}
	return io.NopCloser(bytes.NewReader(o.body)), o.info(key), nil
}

// GetRange implements [bundle.Store].
func (s *Store) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	o, err := s.get(ctx, key)
	if err != nil {
		return nil, err
	}
	if off < 0 || n < 0 {
		return nil, fmt.Errorf("get %s: range of %d bytes from %d, want none below 0", key, n, off)
	}
	return io.NopCloser(io.NewSectionReader(bytes.NewReader(o.body), off, n)), nil
}

func (s *Store) get(ctx context.Context, key string) (object, error) {
	if err := admit(ctx, key); err != nil {
		return object{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	o, ok := s.objects[key]
	if !ok {
		return object{}, fmt.Errorf("get %s: %w", key, bundle.ErrNotFound)
	}
	return o, nil
}

// List implements [bundle.Store]. It shows the objects in order, a page at a time: as of a
// large store elsewhere, what is created or deleted meanwhile is shown or not.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[bundle.Info, error] {
	return func(yield func(bundle.Info, error) bool) {
		if err := bundle.CheckPrefix(prefix); err != nil {
			yield(bundle.Info{}, err)
			return
		}
		for from, more := prefix, true; more; {
			page := s.page(prefix, from)
			for _, info := range page {
				if err := ctx.Err(); err != nil {
					yield(bundle.Info{}, fmt.Errorf("list %q: %w", prefix, err))
					return
				}
				if !yield(info, nil) {
					return
				}
				from = info.Key + "\x00" // the next one that there can be
			}
			more = len(page) == pageKeys
		}
		if err := ctx.Err(); err != nil {
			yield(bundle.Info{}, fmt.Errorf("list %q: %w", prefix, err))
		}
	}
}

// pageKeys is how many objects a listing sees at once, as of S3.
const pageKeys = 1000

// page returns the first objects with the prefix that are not before a key.
func (s *Store) page(prefix, from string) (page []bundle.Info) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.keys.from(from, func(key string) bool {
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		page = append(page, s.objects[key].info(key))
		return len(page) < pageKeys
	})
	return page
}

// Delete implements [bundle.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := admit(ctx, key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
	s.keys.remove(key)
	return nil
}

// URL implements [bundle.Store].
func (s *Store) URL() string { return "mem:" }

// Close implements [bundle.Store]. The objects stay.
func (s *Store) Close() error { return nil }

func (o object) info(key string) bundle.Info {
	return bundle.Info{Key: key, Size: int64(len(o.body)), Modified: o.modified, Version: o.version}
}

// admit refuses what must not have any effect.
func admit(ctx context.Context, key string) error {
	if err := bundle.CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}
