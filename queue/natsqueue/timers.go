// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"sync"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// timers wake the slots that serve a run when a moment comes that this value
// knows of: a retry that it scheduled, a delivery that it handed back. They only
// make things fast; idle slots find everything without them.
type timers struct {
	q       *Queue
	mu      sync.Mutex
	pending map[*time.Timer]struct{}
	stopped bool
}

func (t *timers) wakeLater(run queue.Run, after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	if t.pending == nil {
		t.pending = map[*time.Timer]struct{}{}
	}
	var timer *time.Timer
	timer = time.AfterFunc(after, func() {
		t.mu.Lock()
		delete(t.pending, timer)
		stopped := t.stopped
		t.mu.Unlock()
		if !stopped {
			t.q.wake(run)
		}
	})
	t.pending[timer] = struct{}{}
}

func (t *timers) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	for timer := range t.pending {
		timer.Stop()
	}
	t.pending = nil
}
