// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"sync"
	"time"
)

// load is how many trials a worker has, from the lease until its answer.
type load struct {
	mu      sync.Mutex
	running int // hold a slot
	all     int
	idle    time.Time     // since when there are none, and it could have had some
	changed chan struct{} // closed at each change, and replaced
}

func newLoad() *load { return &load{idle: time.Now(), changed: make(chan struct{})} }

func (l *load) change(what func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what()
	l.idle = time.Now()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *load) begin()     { l.change(func() { l.running++; l.all++ }) }
func (l *load) slotFree()  { l.change(func() { l.running-- }) }
func (l *load) end()       { l.change(func() { l.all-- }) }
func (l *load) notItself() { l.change(func() {}) } // for whatever reason it could have had none

func (l *load) look() (running, all int, idle time.Time, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running, l.all, l.idle, l.changed
}

// untilIdle returns true when the worker has had nothing to do for so long. Time in which
// it holds back, or the queue doesn't answer, is not idle: somebody else has to know of it
// then. It returns false when ctx ended first.
func (w *Worker) untilIdle(ctx context.Context, long time.Duration) bool {
	for {
		_, all, idle, changed := w.load.look()
		open, moved := w.gate.look()
		var enough <-chan time.Time
		var timer *time.Timer
		if all == 0 && open {
			left := long - time.Since(idle)
			if left <= 0 {
				return true
			}
			timer = time.NewTimer(left)
			enough = timer.C
		}
		select {
		case <-changed:
		case <-moved:
			w.load.notItself()
		case <-enough:
		case <-ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return false
		}
	}
}
