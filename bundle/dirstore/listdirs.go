// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"

	"github.com/tidemill/tidemill/bundle"
)

var _ bundle.DirLister = (*Store)(nil)

// Dirs implements [bundle.DirLister] by reading one directory.
func (s *Store) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		err := bundle.CheckPrefix(prefix)
		if err == nil && prefix != "" && !strings.HasSuffix(prefix, "/") {
			err = fmt.Errorf("%w: prefix %q: want a / at its end", bundle.ErrInvalidKey, prefix)
		}
		if err == nil {
			path := filepath.Join(s.root, bundle.LocalPath(strings.TrimSuffix(prefix, "/")))
			err = s.dirsIn(ctx, path, prefix, "", func(name string) bool { return yield(name, nil) })
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield("", fmt.Errorf("list directories %q: %w", prefix, condition(err)))
		}
	}
}

// dirsIn yields the names in a directory; begun is what a long one began with in the
// directories above.
func (s *Store) dirsIn(ctx context.Context, path, prefix, begun string, yield func(string) bool) error {
	return eachEntry(ctx, path, func(e fs.DirEntry) error {
		if !e.IsDir() || e.Name()[0] == '.' {
			return nil
		}
		return s.dirEntry(ctx, path, prefix, begun, e.Name(), yield)
	})
}

func (s *Store) dirEntry(ctx context.Context, path, prefix, begun, name string, yield func(string) bool) error {
	if cut, ok := beginsLong(name); ok {
		return s.dirsIn(ctx, filepath.Join(path, name), prefix, begun+cut, yield)
	}
	name = begun + name
	// What a crash or a stranger left may hold no object.
	for _, err := range s.List(ctx, prefix+name+"/") {
		if errors.Is(err, bundle.ErrInvalidKey) {
			return nil
		}
		if err != nil {
			return err
		}
		if !yield(name) {
			return errStopped
		}
		return nil
	}
	return nil
}

// beginsLong tells a directory that holds the rest of a long segment, and what the
// segment begins with. (A stranger's "+" is at another place, or makes keys that
// can't be any.)
func beginsLong(name string) (cut string, ok bool) {
	cut, ok = strings.CutSuffix(name, "+")
	return cut, ok && bundle.LocalPath(cut+"x") == filepath.Join(name, "x")
}
