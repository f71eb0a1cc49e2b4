// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// held are the leases that this value has handed out and that are not over.
type held struct {
	mu     sync.Mutex
	leases map[*lease]struct{}
}

func (h *held) add(l *lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leases == nil {
		h.leases = map[*lease]struct{}{}
	}
	h.leases[l] = struct{}{}
}

func (h *held) drop(l *lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.leases, l)
}

func (h *held) find(which func(*lease) bool) []*lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*lease
	for l := range h.leases {
		if which(l) {
			out = append(out, l)
		}
	}
	return out
}

// revoke ends the leases of a run's jobs up to a number.
func (h *held) revoke(run string, upTo uint64) {
	for _, l := range h.find(func(l *lease) bool { return l.run.ID == run && l.delivery.seq <= upTo }) {
		l.lose()
	}
}

// takenOver ends the lease that somebody says to have taken over: "<key> <nonce>".
func (h *held) takenOver(what string) {
	for _, l := range h.find(func(l *lease) bool { return what == l.key+" "+l.mine.Nonce }) {
		l.lose()
	}
}

// renewers bounds how many leases are renewed at once.
const renewers = 16

// renewAll renews what this value holds, right after a reconnect and before
// others may take it over. What fails is left to the holder's next Extend.
func (q *Queue) renewAll() {
	leases := q.held.find(func(*lease) bool { return true })
	if len(leases) == 0 {
		return
	}
	// A whole fleet reconnects at the same moment.
	select {
	case <-time.After(rand.N(min(time.Second, q.cfg.LeaseTTL/10))):
	case <-q.life.Done():
		return
	}
	ctx, cancel := context.WithTimeout(q.life, q.cfg.LeaseTTL)
	defer cancel()
	_ = q.book.refresh(ctx) // and with it the clock
	var g errgroup.Group
	g.SetLimit(renewers)
	for _, l := range leases {
		g.Go(func() error {
			_ = l.Extend(ctx)
			return nil
		})
	}
	_ = g.Wait()
}
