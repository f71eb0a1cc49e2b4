// SPDX-License-Identifier: Apache-2.0

// Package packcache keeps unpacked packs on a worker's disk, by digest. Whoever asks
// for one that is being fetched waits for that fetch.
package packcache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/singleflight"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
)

// Cache is a directory of unpacked archives. Two processes must not share one.
type Cache struct {
	store bundle.Store
	dir   string
	group singleflight.Group
}

// New returns a cache in a directory that is made if it is missing.
func New(store bundle.Store, dir string) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("pack cache: %w", err)
	}
	return &Cache{store: store, dir: dir}, nil
}

// Dir returns the directory of an archive's content, fetched and checked if need be.
// It must not be changed.
func (c *Cache) Dir(ctx context.Context, sha256 string) (string, error) {
	if b, err := hex.DecodeString(sha256); err != nil || len(b) != 32 {
		return "", fmt.Errorf("pack %q: want a sha256 in 64 hex digits", sha256)
	}
	dir := filepath.Join(c.dir, sha256)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("pack %s: %w", sha256, err)
	}
	// The fetch must not die with the first of several that wait for it.
	ch := c.group.DoChan(sha256, func() (any, error) {
		return nil, c.fetch(context.WithoutCancel(ctx), sha256, dir)
	})
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case res := <-ch:
		if res.Err != nil {
			return "", fmt.Errorf("pack %s: %w", sha256, res.Err)
		}
		return dir, nil
	}
}

func (c *Cache) fetch(ctx context.Context, sha256, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	r, _, err := c.store.Get(ctx, bundle.PackKey(sha256))
	if err != nil {
		return err
	}
	defer r.Close()
	return manifest.Unpack(ctx, r, sha256, dir)
}
