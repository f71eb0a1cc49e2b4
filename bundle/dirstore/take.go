// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
)

// syncsAtOnce is how many files of one call are brought to disk together. File systems
// with a journal write it once for those that wait at the same time.
const syncsAtOnce = 4

var _ bundle.DirTaker = (*Store)(nil)

// TakeDir implements [bundle.DirTaker] with one rename, where the directory is on the
// store's file system.
func (s *Store) TakeDir(ctx context.Context, prefix, dir string, paths []string) error {
	for _, p := range paths {
		if err := check(ctx, prefix+p); err != nil {
			return err
		}
	}
	if s.readOnly {
		return denied(prefix)
	}
	to := filepath.Join(s.root, bundle.LocalPath(strings.TrimSuffix(prefix, "/")))
	if err := s.takeDir(ctx, dir, to, paths); err != nil {
		return fmt.Errorf("take %s: %w", prefix, condition(placeError(err)))
	}
	return nil
}

func (s *Store) takeDir(ctx context.Context, dir, to string, paths []string) error {
	taken, err := isTaken(dir, to)
	if err == nil && !taken {
		err = syncTree(ctx, dir, paths)
	}
	if err != nil {
		return err
	}
	err = s.place(to, func() error {
		if taken {
			return nil
		}
		return rename(dir, to)
	})
	// What is below the prefix may stay, but can't be taken together with these.
	if errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// isTaken says whether the directory was moved by an earlier call.
func isTaken(dir, to string) (bool, error) {
	_, err := os.Lstat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if _, there := os.Lstat(to); there != nil {
		return false, err
	}
	return true, nil
}

// syncTree brings files and the directories that they are in to disk.
func syncTree(ctx context.Context, dir string, paths []string) error {
	all := make([]string, len(paths), 2*len(paths)+1) // files, then directories
	dirs := map[string]bool{dir: true}
	for i, p := range paths {
		all[i] = filepath.Join(dir, bundle.LocalPath(p))
		for d := filepath.Dir(all[i]); !dirs[d]; d = filepath.Dir(d) {
			dirs[d] = true
		}
	}
	all = slices.AppendSeq(all, maps.Keys(dirs))
	syncNth := func(i int) error {
		if i < len(paths) {
			return syncFile(all[i])
		}
		return syncDir(all[i])
	}
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(syncsAtOnce, len(all)) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := syncNth(i); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// syncFile brings a file to disk. A link in its place isn't followed.
func syncFile(path string) error {
	return syncPath(path, syscall.O_NOFOLLOW, func(error) bool { return false })
}
