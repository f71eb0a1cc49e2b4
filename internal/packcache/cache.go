// SPDX-License-Identifier: Apache-2.0

// Package packcache keeps unpacked packs on a worker's disk, by digest. Whoever asks
// for one that is being fetched waits for that fetch.
package packcache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/flight"
	"github.com/tidemill/tidemill/manifest"
)

// Cache is a directory of unpacked archives. Two processes must not share one. Close it.
type Cache struct {
	store   bundle.Store
	dir     string
	fetches *flight.Group[string, string]
}

// New returns a cache in a directory that is made if it is missing. What a crash left
// half unpacked is removed.
func New(store bundle.Store, dir string) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("pack cache: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("pack cache: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("pack cache: %w", err)
			}
		}
	}
	return &Cache{store: store, dir: dir, fetches: flight.New[string, string](context.Background())}, nil
}

// Close ends fetches that are under way. What is on the disk stays.
func (c *Cache) Close() { c.fetches.Close() }

// Dir returns the directory of an archive's content, fetched and checked if need be.
// It must not be changed. The fetch doesn't die with the first of several that wait
// for it.
func (c *Cache) Dir(ctx context.Context, sha256 string) (string, error) {
	if b, err := hex.DecodeString(sha256); err != nil || len(b) != 32 || strings.ToLower(sha256) != sha256 {
		return "", fmt.Errorf("pack %q: want a sha256 in 64 lower-case hex digits", sha256)
	}
	dir, err := c.fetches.Get(ctx, sha256, func(ctx context.Context) (string, error) {
		dir := filepath.Join(c.dir, sha256)
		return dir, c.fetch(ctx, sha256, dir)
	})
	if err != nil {
		return "", fmt.Errorf("pack %s: %w", sha256, err)
	}
	return dir, nil
}

func (c *Cache) fetch(ctx context.Context, sha256, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil // from an earlier process; it appeared whole
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r, _, err := c.store.Get(ctx, bundle.PackKey(sha256))
	if err != nil {
		return err
	}
	defer r.Close()
	return manifest.Unpack(ctx, storeReader{r}, sha256, dir)
}

// storeReader marks what the store did to a stream, so that it is told from an archive
// that is bad.
type storeReader struct{ io.Reader }

func (r storeReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", bundle.ErrUnavailable, err)
	}
	return n, err
}
