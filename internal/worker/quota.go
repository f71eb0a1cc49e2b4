// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"sync"
)

// quota is how many trials a worker may begin. Who wants to lease one takes a right first,
// so that no slot takes more than was asked for.
type quota struct {
	mu      sync.Mutex
	most    int // 0 is no limit
	begun   int
	pending int           // rights that were taken and may come back
	changed chan struct{} // closed at each change, and replaced
}

func newQuota(most int) *quota { return &quota{most: most, changed: make(chan struct{})} }

// take waits for a right. It returns false when there is none any more, or ctx has ended.
func (q *quota) take(ctx context.Context) bool {
	for {
		q.mu.Lock()
		free, spent, changed := q.most == 0 || q.begun+q.pending < q.most, q.most > 0 && q.begun >= q.most, q.changed
		if free && ctx.Err() == nil {
			q.pending++
			q.mu.Unlock()
			return true
		}
		q.mu.Unlock()
		if spent {
			return false
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// settle ends a right: a trial was begun with it, or it comes back.
func (q *quota) settle(begun bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending--
	if begun {
		q.begun++
	}
	close(q.changed)
	q.changed = make(chan struct{})
}

// count is how many trials were begun.
func (q *quota) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.begun
}
