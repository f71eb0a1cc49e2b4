// SPDX-License-Identifier: Apache-2.0

// Package local is a data directory: a store at its top and, hidden below .tidemill,
// what one process needs to work it: the queue's files, sandboxes, spool, lock, socket.
//
// One process owns a data directory at a time, and holds its lock for as long as it
// lives. Because of that lock nobody else can be working there, so an owner may throw
// away what an earlier one left and build it anew from the store, without waiting for
// leases to run out. Everybody else is a client: reading the store needs no lock, and
// the owner answers questions on a socket.
package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidemill/tidemill/internal/placement"
)

// DefaultDir is the data directory of a command that names none.
const DefaultDir = "results"

const hidden = ".tidemill"

// Dir is a data directory that this process owns.
type Dir struct {
	root string
	lock *os.File
}

// Acquire makes a data directory if need be and becomes its owner. A [BusyError] names
// the owner that it has; an [UnusableError] says why the path can't be one.
func Acquire(root, command string) (*Dir, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, &UnusableError{root, err}
	}
	d := &Dir{root: abs}
	// Sandboxes come and go, bundles and what is in the store stay.
	for _, dir := range []string{abs, filepath.Join(abs, hidden)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, &UnusableError{root, err}
		}
		placement.Spread(dir)
	}
	if d.lock, err = lock(d.path("lock"), root, command); err != nil {
		return nil, err
	}
	return d, nil
}

// Release gives the directory back.
func (d *Dir) Release() error {
	return errors.Join(d.lock.Truncate(0), d.lock.Close())
}

// Store is the directory of the store.
func (d *Dir) Store() string { return d.root }

// Work is where sandboxes are.
func (d *Dir) Work() string { return d.path("work") }

// WorkOf is where sandboxes of a data directory are, whoever owns it.
func WorkOf(root string) string { return filepath.Join(root, hidden, "work") }

// WorkerOf is where the worker of a data directory keeps packs and spool, whoever owns it.
func WorkerOf(root string) string { return filepath.Join(root, hidden, "worker") }

// HiddenOf has all of a data directory that is not the store.
func HiddenOf(root string) string { return filepath.Join(root, hidden) }

// IsRebuilt reports whether an entry of [HiddenOf] is one that [Dir.Clear] removes.
func IsRebuilt(name string) bool { return name == "queue" || name == "tmp" }

// KeptOf is where is written down what was kept in a data directory for people.
func KeptOf(root string) string { return filepath.Join(root, hidden, "kept") }

// Worker is where the worker keeps packs and spool.
func (d *Dir) Worker() string { return d.path("worker") }

// Temp is for files that don't outlive the process.
func (d *Dir) Temp() string { return d.path("tmp") }

// Queue is where the queue keeps its files.
func (d *Dir) Queue() string { return d.path("queue") }

func (d *Dir) path(name string) string { return filepath.Join(d.root, hidden, name) }

// ErrGone: the data directory is not what it was when this process became its owner.
var ErrGone = errors.New("the data directory was removed or replaced while it was in use")

// Check reports [ErrGone] when the lock that this process holds is no longer the one
// that others would find: then another may be working there.
func (d *Dir) Check() error {
	held, err := d.lock.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w", d.root, err)
	}
	found, err := os.Stat(d.path("lock"))
	if err != nil || !os.SameFile(held, found) {
		return fmt.Errorf("%s: %w", d.root, ErrGone)
	}
	return nil
}

// Reset makes an empty place for what the store can rebuild: the queue and temporary
// files. What an earlier owner left there goes.
func (d *Dir) Reset() error {
	if err := d.Clear(); err != nil {
		return err
	}
	for _, dir := range []string{d.Queue(), d.Temp()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	return nil
}

// Clear removes what the store can rebuild.
func (d *Dir) Clear() error {
	for _, dir := range []string{d.Queue(), d.Temp()} {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	return nil
}
