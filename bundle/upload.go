// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// Upload puts a sealed bundle below a prefix that ends in "/": up to parallel files at
// a time, and index.json when all others are there. It can be repeated.
func Upload(ctx context.Context, s Store, prefix string, sealed Sealed, parallel int) error {
	g, fileCtx := errgroup.WithContext(ctx)
	g.SetLimit(max(parallel, 1))
	for _, e := range sealed.Files {
		g.Go(func() error { return putFile(fileCtx, s, prefix, sealed.Dir, e.Path, e.Size) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return putFile(ctx, s, prefix, sealed.Dir, IndexName, -1)
}

func putFile(ctx context.Context, s Store, prefix, dir, path string, size int64) error {
	f, err := os.Open(filepath.Join(dir, LocalPath(path)))
	if err != nil {
		return fmt.Errorf("upload %s: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("upload %s: %w", path, err)
	}
	if size >= 0 && info.Size() != size {
		return fmt.Errorf("upload %s: %d bytes, sealed with %d", path, info.Size(), size)
	}
	if err := s.Put(ctx, prefix+path, f, info.Size()); err != nil {
		return fmt.Errorf("upload %s: %w", path, err)
	}
	return nil
}
