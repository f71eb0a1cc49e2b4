// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Delete implements [bundle.Store]. Directories that became empty go too.
func (s *Store) Delete(ctx context.Context, key string) error {
	path, err := s.writable(ctx, key)
	if err != nil {
		return err
	}
	err = s.locks.with(ctx, key, func() error {
		// Not os.Remove, which would remove an empty directory as well.
		return syscall.Unlink(path)
	})
	if err == nil {
		err = s.prune(filepath.Dir(path))
	}
	if err != nil && !absent(err) && !isDir(path) {
		return fmt.Errorf("delete %s: %w", key, condition(err))
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// prune removes a directory and those above it as long as they are empty, and brings
// to disk what remains. Writers make directories anew when they find them gone.
func (s *Store) prune(dir string) error {
	for ; dir != s.root; dir = filepath.Dir(dir) {
		err := syscall.Rmdir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			break
		}
		s.dirs.forget(dir)
	}
	return syncDir(dir)
}
