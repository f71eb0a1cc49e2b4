// SPDX-License-Identifier: Apache-2.0

package packcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
)

// bring makes sure that a pack is on the disk and is what its digest says. It happens once
// for as long as the pack is in the cache. Somebody holds it.
func (c *Cache) bring(ctx context.Context, sha256 string) (string, error) {
	dir := filepath.Join(c.dir, sha256)
	there, err := c.check(ctx, sha256, dir)
	if err != nil {
		return "", err
	}
	if !there {
		if err := c.fetch(ctx, sha256, dir); err != nil {
			return "", err
		}
	}
	size, err := diskUse(dir)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.packs[sha256]
	if p == nil { // all who waited gave up; it stays for others
		p = &pack{}
		c.packs[sha256] = p
	}
	p.ready, p.bytes, p.latest = true, size, time.Now()
	c.makeRoom()
	return dir, nil
}

// check reports whether a whole pack is there from an earlier process. What is there and
// isn't whole is removed.
func (c *Cache) check(ctx context.Context, sha256, dir string) (bool, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	got, err := manifest.Archive(ctx, dir, nil, manifest.ArchiveOptions{})
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err == nil && got == sha256 {
		return true, nil
	}
	c.mu.Lock()
	if p := c.packs[sha256]; p != nil {
		p.ready, p.bytes = false, 0
	}
	c.mu.Unlock()
	if err := os.RemoveAll(dir); err != nil {
		return false, fmt.Errorf("spoiled pack: %w", err)
	}
	return false, nil
}

func (c *Cache) fetch(ctx context.Context, sha256, dir string) error {
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
