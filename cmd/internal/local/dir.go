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
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// DefaultDir is the data directory of a command that names none.
const DefaultDir = "results"

const hidden = ".tidemill"

// Dir is a data directory that this process owns.
type Dir struct {
	root string
	lock *os.File
}

// Owner is who holds the lock, as it says itself.
type Owner struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// BusyError says that a data directory has an owner.
type BusyError struct {
	Dir   string
	Owner Owner
}

func (e *BusyError) Error() string {
	who := "another process"
	if e.Owner.PID != 0 {
		who = fmt.Sprintf("%s (process %d, since %s)", e.Owner.Command, e.Owner.PID, e.Owner.Since.Local().Format(time.DateTime))
	}
	return fmt.Sprintf("%s is in use by %s", e.Dir, who)
}

// Acquire makes a data directory if need be and becomes its owner. A [BusyError] names
// the owner that it has.
func Acquire(root, command string) (*Dir, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", root, err)
	}
	d := &Dir{root: abs}
	if err := os.MkdirAll(filepath.Join(abs, hidden), 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if d.lock, err = os.OpenFile(d.path("lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	// flock dies with the process, however it dies.
	if err := syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer d.lock.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s can't be locked: %w", root, err)
		}
		busy := &BusyError{Dir: root}
		_ = json.NewDecoder(d.lock).Decode(&busy.Owner) // it may not have said yet
		return nil, busy
	}
	if err := d.sign(command); err != nil {
		d.lock.Close()
		return nil, fmt.Errorf("data directory %s: %w", root, err)
	}
	return d, nil
}

func (d *Dir) sign(command string) error {
	body, err := json.Marshal(Owner{PID: os.Getpid(), Command: command, Since: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	if err := d.lock.Truncate(0); err != nil {
		return err
	}
	_, err = d.lock.WriteAt(append(body, '\n'), 0)
	return err
}

// Release gives the directory back.
func (d *Dir) Release() error {
	return errors.Join(d.lock.Truncate(0), d.lock.Close())
}

// Store is the directory of the store.
func (d *Dir) Store() string { return d.root }

// Work is where sandboxes are.
func (d *Dir) Work() string { return d.path("work") }

// Worker is where the worker keeps packs and spool.
func (d *Dir) Worker() string { return d.path("worker") }

// Temp is for files that don't outlive the process.
func (d *Dir) Temp() string { return d.path("tmp") }

// Queue is where the queue keeps its files.
func (d *Dir) Queue() string { return d.path("queue") }

func (d *Dir) path(name string) string { return filepath.Join(d.root, hidden, name) }

// Reset removes what an earlier owner left that the store can rebuild: the queue and
// temporary files.
func (d *Dir) Reset() error {
	for _, dir := range []string{d.Queue(), d.Temp()} {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	return nil
}
