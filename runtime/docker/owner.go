// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"os"
	"path/filepath"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// ownership is what can be said about the owner of something on the engine.
type ownership int

const (
	dead    ownership = iota // seen to be gone: its lock is free, or its record was removed
	alive                    // seen to hold its lock
	unknown                  // it is on another machine, or in files that we can't see
)

// owner looks whether the owner of something lives.
func owner(labels map[string]string) ownership {
	if labels[labelHost] != hostID() {
		return unknown
	}
	record := labels[labelRecord]
	if !filepath.IsAbs(record) {
		return unknown
	}
	if _, err := os.Stat(record); notThere(err) {
		// Gone with its owner, unless it is that directory which we can't see.
		if _, err := os.Stat(filepath.Dir(record)); err == nil {
			return dead
		}
		return unknown
	}
	f, err := lockDir(record)
	switch {
	case err != nil:
		return unknown
	case f == nil:
		return alive
	}
	(&estate{lock: f}).release()
	return dead
}

// isLive is [runtime.Resource].Live: an owner that can't be asked is taken for alive until
// the expiry, so that nobody else's sandbox is swept.
func isLive(labels map[string]string, now time.Time) bool {
	switch owner(labels) {
	case alive:
		return true
	case dead:
		return false
	}
	expires := read(labels).ExpiresAt
	return expires.IsZero() || now.Before(expires)
}

// isKept reports whether something was left on purpose and that time is not over.
func isKept(labels map[string]string, now time.Time) bool {
	if labels[labelHost] != hostID() {
		return false
	}
	e, err := readEstate(labels)
	if err != nil {
		return false
	}
	_, err = e.readKept()
	return err == nil && now.Before(read(labels).ExpiresAt)
}

// kept is the file beside the record of a sandbox that was left on purpose.
type kept struct {
	Version int          `json:"version"`
	Nonce   string       `json:"nonce"`
	At      time.Time    `json:"at"`
	Spec    runtime.Spec `json:"spec"` // to go on with it as it was
	Box     boxFacts     `json:"box"`
}

func (e *estate) writeKept(k kept) error { return writeJSON(filepath.Join(e.path, keptName), k) }

func (e *estate) readKept() (kept, error) {
	var k kept
	if err := readJSON(filepath.Join(e.path, keptName), &k); err != nil {
		return kept{}, err
	}
	if k.Version != recordVersion || k.Nonce != e.Nonce {
		return kept{}, os.ErrNotExist
	}
	return k, nil
}
