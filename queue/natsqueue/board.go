// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// openRun is what the runs bucket holds of a run.
type openRun struct {
	queue.Run
	// Purged is the last number in TRIALS when the run was last purged. Leases of
	// jobs up to it are over.
	Purged uint64 `json:"purged,omitempty"`
	// Closing runs are closed already, but not all of theirs is removed.
	Closing bool `json:"closing,omitempty"`
}

// fullFor is how long a run that was at its cap is left alone, unless a wake or
// an end of a job of ours says otherwise.
const fullFor = time.Second

// board is what this value knows of the open runs: what the watch told, and
// whose turn it is.
//
// Turns are by stride: each run has a pass, the one with the smallest goes next
// and moves on by one over its weight. A run is hot while it may have jobs; hot
// ones are asked first, the others in the order in which they were last asked.
type board struct {
	mu      sync.Mutex
	runs    map[string]*seat
	pass    float64 // of the run that was last served
	looks   uint64
	stirred time.Time     // when a run was last heated unasked
	changed chan struct{} // closed and replaced when a run came, or may have got jobs
}

// seat is one run on the board.
type seat struct {
	openRun
	revision uint64
	hot      bool
	pass     float64
	looked   uint64    // when it was last asked, counted in looks
	notUntil time.Time // full, or over its rate, until then
}

func newBoard() *board {
	return &board{runs: map[string]*seat{}, changed: make(chan struct{})}
}

// put notes what the watch tells of a run.
func (b *board) put(r openRun, revision uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.runs[r.ID]
	if s == nil {
		s = &seat{}
		b.runs[r.ID] = s
	}
	same := s.revision == revision
	s.openRun, s.revision = r, revision
	if !same {
		s.notUntil = time.Time{}
		b.heat(s)
		b.signal()
	}
}

func (b *board) remove(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.runs, run)
}

// keep drops all runs but these.
func (b *board) keep(runs map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.runs {
		if !runs[id] {
			delete(b.runs, id)
		}
	}
}

func (b *board) signal() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// heat marks a run as one that may have jobs. It catches up in the turns, to
// where a random part of its step keeps many workers from going in lockstep.
func (b *board) heat(s *seat) {
	if s.hot {
		return
	}
	s.hot = true
	s.pass = max(s.pass, b.pass+rand.Float64()/float64(s.Priority.Weight()))
}

// change is closed at the next change.
func (b *board) change() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// purged returns up to where the run was purged; all of it, if it isn't open.
func (b *board) purged(run string) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.runs[run]; s != nil {
		return s.Purged
	}
	return ^uint64(0)
}

// serves reports whether a request can be served from the run at all.
func (s *seat) serves(req queue.Request) bool { return req.Serves(s.Run) }

// classes returns the classes of the open runs that the request serves.
func (b *board) classes(req queue.Request) map[queue.Class]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	classes := map[queue.Class]bool{}
	for _, s := range b.runs {
		if s.serves(req) {
			classes[s.Class] = true
		}
	}
	return classes
}

// count is how many open runs the request serves.
func (b *board) count(req queue.Request) (runs int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.runs {
		if s.serves(req) {
			runs++
		}
	}
	return runs
}

// next gives the turn to a run that was not tried yet: to a hot one, or if cold
// ones are asked for too, to the one that was not asked for longest.
func (b *board) next(req queue.Request, tried map[string]bool, cold bool) (openRun, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	var turn *seat
	for _, s := range b.runs {
		if s.Paused || tried[s.ID] || now.Before(s.notUntil) || !cold && !s.hot || !s.serves(req) {
			continue
		}
		if turn == nil || s.before(turn) {
			turn = s
		}
	}
	if turn == nil {
		return openRun{}, false
	}
	b.looks++
	turn.looked = b.looks
	// Slots that look at the same time go to different runs. settle gives the
	// step back if nothing was there.
	turn.pass += 1 / float64(turn.Priority.Weight())
	return turn.openRun, true
}

func (s *seat) before(t *seat) bool {
	switch {
	case s.hot != t.hot:
		return s.hot
	case s.hot:
		return s.pass < t.pass
	default:
		return s.looked < t.looked
	}
}

// settle notes how the turn that next gave ended.
func (b *board) settle(run string, served, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.runs[run]
	if s == nil {
		return
	}
	step := 1 / float64(s.Priority.Weight())
	switch {
	case !served:
		s.pass -= step
		s.hot = more
	case more:
		b.pass = max(b.pass, s.pass-step)
		b.heat(s)
	default:
		b.pass = max(b.pass, s.pass-step)
		s.hot = false
	}
}

// hold leaves a hot run alone for a while.
func (b *board) hold(run string, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.runs[run]; s != nil {
		s.notUntil = time.Now().Add(wait)
		b.heat(s)
	}
}

// touch marks a run as one that has jobs and room for them. It reports whether
// the run is on the board.
func (b *board) touch(run string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.runs[run]
	if s == nil {
		return false
	}
	if s.Limits.MaxStartsPerSecond == 0 {
		s.notUntil = time.Time{}
	}
	b.heat(s)
	return true
}

// stir heats the run that was not asked for longest, so that the next round asks
// it, unless that was done less than the given time ago.
func (b *board) stir(req queue.Request, every time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.stirred) < every {
		return
	}
	b.stirred = time.Now()
	var oldest *seat
	for _, s := range b.runs {
		if s.serves(req) && !s.Paused && (oldest == nil || s.looked < oldest.looked) {
			oldest = s
		}
	}
	if oldest != nil {
		b.heat(oldest)
	}
}

// nextDue is when a hot run that is held may be asked again.
func (b *board) nextDue(req queue.Request) (due time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.runs {
		if s.hot && !s.Paused && !s.notUntil.IsZero() && s.serves(req) && (due.IsZero() || s.notUntil.Before(due)) {
			due = s.notUntil
		}
	}
	return due
}
