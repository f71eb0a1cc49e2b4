// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tidemill/tidemill/internal/watermark"
)

// A program that can't write for want of room on our disk fails through no fault of its
// own, and its exit code doesn't tell. So the worker remembers when its disk was full: a
// verdict from such a time counts only if it is a pass.

const (
	// fullEvery is how often the disk is looked at. What was full for less time may be
	// missed.
	fullEvery = 500 * time.Millisecond
	// fullBelow is how little room is none, at least.
	fullBelow = 1 << 20
	// fullShare of the room that there has to be before a trial begins is none either.
	fullShare = 64
)

// fullDisk remembers when the disk was full last.
type fullDisk struct {
	below int64
	ask   func() (int64, error)

	mu   sync.Mutex
	last time.Time // monotonic; zero for never
	had  int64     // then, in bytes
}

func newFullDisk(dir string, minFree int64) *fullDisk {
	return &fullDisk{below: max(fullBelow, minFree/fullShare), ask: func() (int64, error) { return watermark.Disk(dir) }}
}

// look takes a value. A disk that doesn't answer says nothing.
func (f *fullDisk) look() {
	have, err := f.ask()
	if err != nil || have >= f.below {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.had = time.Now(), have
}

// note remembers that a write found no room just now.
func (f *fullDisk) note() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.had = time.Now(), 0
}

// watch looks until ctx ends.
func (f *fullDisk) watch(ctx context.Context) {
	ticker := time.NewTicker(fullEvery)
	defer ticker.Stop()
	for {
		f.look()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// since says whether the disk was full at some moment since then.
func (f *fullDisk) since(then time.Time) error {
	f.look()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last.IsZero() || f.last.Before(then) {
		return nil
	}
	return fmt.Errorf("the worker's disk was full meanwhile: %s free", watermark.Size(f.had))
}
