// SPDX-License-Identifier: Apache-2.0

// Package packcache keeps unpacked packs on a worker's disk, by digest. Whoever asks
// for one that is being fetched waits for that fetch.
//
// The disk that it takes is bounded: when a pack comes in, those that were not used for
// longest go, until the rest fits. What is in use never goes. A pack that an earlier
// process unpacked is checked by its digest before it is used again, for neither a crash
// nor a full disk tells what it spoiled.
package packcache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/flight"
)

// Cache is a directory of unpacked archives. Two processes must not share one. Close it.
type Cache struct {
	store   bundle.Store
	dir     string
	limit   int64
	fetches *flight.Group[string, string]

	mu    sync.Mutex
	packs map[string]*pack // by digest
	gone  int              // how many were taken out, for names
	// removing is what takes the directories of packs that are out of the cache.
	removing sync.WaitGroup
}

// pack is one that is in the cache, or on its way there.
type pack struct {
	users  int   // who holds it, or waits for it
	ready  bool  // it is on the disk, whole as far as is known
	bytes  int64 // on the disk
	latest time.Time
}

// New returns a cache in a directory that is made if it is missing, bounded to so many
// bytes; 0 is no bound. What a crash left half unpacked is removed.
func New(store bundle.Store, dir string, limit int64) (*Cache, error) {
	if limit < 0 {
		return nil, fmt.Errorf("pack cache: limit of %d bytes: want 0 or more", limit)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("pack cache: %w", err)
	}
	c := &Cache{
		store: store, dir: dir, limit: limit, packs: map[string]*pack{},
		fetches: flight.New[string, string](context.Background()),
	}
	if err := c.takeStock(); err != nil {
		return nil, fmt.Errorf("pack cache: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.makeRoom()
	return c, nil
}

// Close ends fetches that are under way. What is on the disk stays.
func (c *Cache) Close() {
	c.fetches.Close()
	c.removing.Wait()
}

// Held is a pack that stays until it is released.
type Held struct {
	// Dir has the archive's content. It must not be changed.
	Dir     string
	release func()
}

// Release lets the pack go. It can be repeated.
func (h Held) Release() { h.release() }

// Use returns an archive's content, fetched and checked if need be, and holds it there
// until it is released. The fetch doesn't die with the first of several that wait for it.
func (c *Cache) Use(ctx context.Context, sha256 string) (Held, error) {
	if !isDigest(sha256) {
		return Held{}, fmt.Errorf("pack %q: want a sha256 in 64 lower-case hex digits", sha256)
	}
	c.hold(sha256)
	held := Held{release: sync.OnceFunc(func() { c.release(sha256) })}
	var err error
	held.Dir, err = c.fetches.Get(ctx, sha256, func(ctx context.Context) (string, error) {
		return c.bring(ctx, sha256)
	})
	if err != nil {
		held.Release()
		return Held{}, fmt.Errorf("pack %s: %w", sha256, err)
	}
	return held, nil
}

// Bytes is what the packs take on the disk, as far as they are there.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes()
}

func (c *Cache) hold(sha256 string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.packs[sha256]
	if p == nil {
		p = &pack{}
		c.packs[sha256] = p
	}
	p.users++
}

func (c *Cache) release(sha256 string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.packs[sha256]
	p.users--
	switch {
	case p.ready:
		p.latest = time.Now()
		_ = os.Chtimes(filepath.Join(c.dir, sha256), p.latest, p.latest) // for the next process; it would only guess worse
	case p.users == 0:
		delete(c.packs, sha256)
	}
}

func isDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && strings.ToLower(s) == s
}

// takeStock removes what is half unpacked and finds the packs of earlier processes.
func (c *Cache) takeStock() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(c.dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			errs = append(errs, os.RemoveAll(path))
			continue
		}
		info, err := e.Info()
		if err != nil || !e.IsDir() || !isDigest(e.Name()) {
			continue // nobody's, or not ours
		}
		size, err := diskUse(path)
		errs = append(errs, err)
		c.packs[e.Name()] = &pack{ready: true, bytes: size, latest: info.ModTime()}
	}
	return errors.Join(errs...)
}
