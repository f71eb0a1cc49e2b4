// SPDX-License-Identifier: Apache-2.0

package memqueue

import (
	"container/heap"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// state is where a live job is.
type state int

const (
	pending state = iota
	delayed
	leased
)

// entry is one live job.
type entry struct {
	queue.Job
	state  state
	order  uint64    // its place among the pending ones
	due    time.Time // when the delay ends, or the lease runs out
	holder *lease    // while leased; of the newest delivery
	index  int       // in the heap that it is in
}

// run is one open run with its live jobs. Its fields are guarded by the broker.
type run struct {
	queue.Run
	live    map[string]*entry // by trial
	pending heapOf            // by order
	timed   heapOf            // delayed and leased ones by due
	leased  int
	starts  time.Time // when the next job may start
	pass    float64   // how far it is in the turns
	opened  int       // how often it was opened while it was open
}

func newRun(r queue.Run, turn float64) *run {
	return &run{
		Run:     r,
		live:    map[string]*entry{},
		pending: heapOf{less: func(a, b *entry) bool { return a.order < b.order }},
		timed:   heapOf{less: func(a, b *entry) bool { return a.due.Before(b.due) }},
		pass:    turn,
	}
}

// put places a job that is in no heap. A job that starts to wait catches up in
// the turns: a run that was empty has saved nothing.
func (r *run) put(e *entry, to state, turn float64) {
	e.state = to
	switch to {
	case pending:
		if r.pending.Len() == 0 {
			r.pass = max(r.pass, turn)
		}
		heap.Push(&r.pending, e)
	case leased:
		r.leased++
		heap.Push(&r.timed, e)
	case delayed:
		heap.Push(&r.timed, e)
	}
}

// take removes a job from the heap that it is in. It stays live.
func (r *run) take(e *entry) {
	switch e.state {
	case pending:
		heap.Remove(&r.pending, e.index)
	case leased:
		r.leased--
		e.holder = nil
		heap.Remove(&r.timed, e.index)
	case delayed:
		heap.Remove(&r.timed, e.index)
	}
}

// advance makes pending what has become due: delays that ended and leases that
// ran out.
func (r *run) advance(b *Broker, now time.Time) {
	for r.timed.Len() > 0 && !r.timed.entries[0].due.After(now) {
		e := r.timed.entries[0]
		was, holder := e.state, e.holder
		r.take(e)
		if was == delayed {
			b.order++
			e.order = b.order
		}
		// Until somebody else leases it the late holder may come back.
		e.holder = holder
		r.put(e, pending, b.turn)
	}
}

// ready reports whether a job could be handed out now, and else when to look
// again if time alone may change that.
func (r *run) ready(now time.Time) (ok bool, again time.Time) {
	if r.timed.Len() > 0 {
		again = r.timed.entries[0].due
	}
	switch {
	case r.Paused || r.pending.Len() == 0:
		return false, again
	case r.Limits.MaxInFlight > 0 && r.leased >= r.Limits.MaxInFlight:
		return false, again
	case r.Limits.MaxStartsPerSecond > 0 && now.Before(r.starts):
		if again.IsZero() || r.starts.Before(again) {
			again = r.starts
		}
		return false, again
	}
	return true, again
}

// heapOf is a heap of jobs that know their place in it.
type heapOf struct {
	entries []*entry
	less    func(a, b *entry) bool
}

func (h *heapOf) Len() int           { return len(h.entries) }
func (h *heapOf) Less(i, j int) bool { return h.less(h.entries[i], h.entries[j]) }

func (h *heapOf) Swap(i, j int) {
	h.entries[i], h.entries[j] = h.entries[j], h.entries[i]
	h.entries[i].index, h.entries[j].index = i, j
}

func (h *heapOf) Push(x any) {
	e := x.(*entry)
	e.index = len(h.entries)
	h.entries = append(h.entries, e)
}

func (h *heapOf) Pop() any {
	last := len(h.entries) - 1
	e := h.entries[last]
	h.entries[last] = nil
	h.entries = h.entries[:last]
	return e
}
