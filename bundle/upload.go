// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// Upload puts a sealed bundle below a prefix that ends in "/": up to parallel files at
// a time, and index.json when all others are there. A [DirTaker] gets the directory
// itself. It can be repeated.
func Upload(ctx context.Context, s Store, prefix string, sealed Sealed, parallel int) error {
	if t, ok := s.(DirTaker); ok {
		err := giveDir(ctx, t, prefix, sealed)
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return putFiles(ctx, s, prefix, sealed, parallel)
}

func giveDir(ctx context.Context, t DirTaker, prefix string, sealed Sealed) error {
	paths := make([]string, 0, len(sealed.Files)+1)
	for _, e := range sealed.Files {
		info, err := os.Lstat(filepath.Join(sealed.Dir, LocalPath(e.Path)))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // the store says whether it has taken the directory
		} else if err == nil {
			err = asSealed(e.Path, info, e.Size)
		}
		if err != nil {
			return fmt.Errorf("upload %w", err)
		}
		paths = append(paths, e.Path)
	}
	if err := t.TakeDir(ctx, prefix, sealed.Dir, append(paths, IndexName)); err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	return nil
}

func asSealed(path string, info os.FileInfo, size int64) error {
	if info.Size() != size {
		return fmt.Errorf("%s: %d bytes, sealed with %d", path, info.Size(), size)
	}
	return nil
}

func putFiles(ctx context.Context, s Store, prefix string, sealed Sealed, parallel int) error {
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
	if size >= 0 {
		if err := asSealed(path, info, size); err != nil {
			return fmt.Errorf("upload %w", err)
		}
	}
	if err := s.Put(ctx, prefix+path, f, info.Size()); err != nil {
		return fmt.Errorf("upload %s: %w", path, err)
	}
	return nil
}
