// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// identity tells a directory from another one that has its name. Birth is in
// nanoseconds, 0 where the file system has none; its clock may tick every few
// milliseconds only, so whoever has a directory keeps it open, and its inode number
// with it.
type identity struct {
	Inode uint64 `json:"inode"`
	Birth int64  `json:"birth,omitempty"`
}

// record says whose a sandbox is. It is complete before the sandbox is published and
// never changes; see traces for what comes after it.
type record struct {
	Version int            `json:"version"`
	Store   string         `json:"store"`
	Name    string         `json:"name"`
	Nonce   string         `json:"nonce"`
	PID     int            `json:"pid"` // for people: the lock is what tells whether the owner lives
	Created time.Time      `json:"created"`
	Workdir identity       `json:"workdir"`
	Labels  runtime.Labels `json:"labels"`

	// What was appended: of each owner that the sandbox had, the last is complete.
	traces []traces
}

const (
	recordVersion = 1
	recordMax     = 1 << 20
)

// write writes the record of a new side directory.
func (r record) write(side *directory) error { return r.writeAs(side, recordName) }

// rewrite replaces the record; whoever looks sees the old one or the new one.
func (r record) rewrite(side *directory) error {
	const next = recordName + ".new"
	fd := side.fd
	if err := unix.Unlinkat(fd, next, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if err := r.writeAs(side, next); err != nil {
		return err
	}
	return unix.Renameat(fd, next, fd, recordName)
}

func (r record) writeAs(side *directory, name string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	fd, err := createAt(side, name)
	if err != nil {
		return err
	}
	if err := writeAndClose(fd, append(data, '\n')); err != nil {
		return fmt.Errorf("write %s: %w", side.join(name), err)
	}
	return nil
}

// readRecord reads the record of a side directory. Programs inside may have changed
// it, so nothing in it is used as a path.
func readRecord(side *directory, name string) (record, error) {
	data, err := readFileAt(side, recordName, recordMax)
	if err != nil {
		return record{}, err
	}
	var r record
	parts := json.NewDecoder(bytes.NewReader(data))
	if err := parts.Decode(&r); err != nil {
		return record{}, fmt.Errorf("owner record of %s: %w", name, err)
	}
	for {
		// What is only half there was being written when its writer died, and his nest
		// died with him.
		var t traces
		if parts.Decode(&t) != nil {
			break
		}
		r.traces = append(r.traces, t)
	}
	if r.Version != recordVersion || r.Name != name || r.Store == "" || r.Nonce == "" {
		return record{}, fmt.Errorf("owner record of %s: not one that we wrote", name)
	}
	return r, nil
}

// proof goes into the handle.
func proof(side identity, nonce string) string {
	return fmt.Sprintf("%d.%d.%s", side.Inode, side.Birth, nonce)
}

// lockSide takes the lock of a side directory if nobody has it.
func lockSide(side *directory, how int) (bool, error) {
	for {
		switch err := unix.Flock(side.fd, how|unix.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		default:
			return false, fmt.Errorf("lock %s: %w", side.path(), err)
		}
	}
}

// unlockSide is more than closing: a child that is being forked may have a copy of
// the descriptor for a moment, and with it the lock.
func unlockSide(side *directory) {
	_ = unix.Flock(side.fd, unix.LOCK_UN)
}
