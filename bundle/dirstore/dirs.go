// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// maxKnown bounds the memory for known directories; then it starts afresh.
const maxKnown = 10_000

// directories makes directories, and remembers those that are known to be on disk with
// all above them, so that most writes sync one directory only.
type directories struct {
	root  string
	mu    sync.Mutex
	known map[string]bool
}

func newDirectories(root string) *directories {
	return &directories{root: root, known: map[string]bool{root: true}}
}

// ensure makes a directory below the root, and brings it to disk. One that is there but
// was not made here is synced too: who made it may not have come to that yet.
func (d *directories) ensure(dir string) error {
	if d.isKnown(dir) {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := d.ensure(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := syncDir(parent); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxKnown {
		d.known = map[string]bool{d.root: true}
	}
	d.known[dir] = true
	return nil
}

func (d *directories) isKnown(dir string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[dir]
}

// forget is for a directory that turned out to be gone: somebody removed it, and those
// above it perhaps, when it was empty.
func (d *directories) forget(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for dir != d.root && strings.HasPrefix(dir, d.root) {
		delete(d.known, dir)
		dir = filepath.Dir(dir)
	}
}

// makeRoot makes the root, and brings what it had to make to disk.
func makeRoot(root string) error {
	if _, err := os.Stat(root); err == nil {
		return nil
	}
	parent := filepath.Dir(root)
	if parent != root {
		if err := makeRoot(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(root, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// syncDir brings the entries of a directory to disk, where the file system knows of
// such a thing.
func syncDir(dir string) error { return syncPath(dir, 0, noDirSync) }

func noDirSync(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP)
}
