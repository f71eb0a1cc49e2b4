// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tidemill/tidemill/internal/watermark"
)

// What the gate is held by.
const (
	holdDisk   = "disk"
	holdMemory = "memory"
	holdAlone  = "alone"
)

const (
	// admitEvery is how often disk and memory are looked at, and lowEvery while there is
	// too little of one of them. The disk is looked at before each trial besides: one that
	// is full fails all that are begun.
	admitEvery = 5 * time.Second
	lowEvery   = time.Second
	// admitBound is how long that may take, on a network disk that hangs for example.
	admitBound = time.Minute
)

// level is one of the things of which there has to be enough.
type level struct {
	what, text string
	ask        func() (int64, error)

	mu   sync.Mutex
	mark watermark.Mark
	low  bool
}

// newLevels are those that are looked at.
func newLevels(c Config) (list []*level) {
	if c.MinFreeDisk > 0 {
		list = append(list, &level{what: holdDisk, text: "free disk", mark: watermark.Mark{Low: c.MinFreeDisk}, ask: c.FreeDisk})
	}
	if c.MinFreeMemory > 0 {
		list = append(list, &level{what: holdMemory, text: "available memory", mark: watermark.Mark{Low: c.MinFreeMemory}, ask: c.FreeMemory})
	}
	return list
}

// diskIsLow looks at the disk, and reports whether it keeps trials from beginning.
func (w *Worker) diskIsLow() bool {
	i := slices.IndexFunc(w.levels, func(l *level) bool { return l.what == holdDisk })
	return i >= 0 && w.look(w.levels[i], false)
}

// noRoom reports whether a write failed because the disk has no room, or gives us none.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// foundNoRoom holds the gate if an error says that the disk has no room, whatever the disk
// says of itself, until it is looked at next.
func (w *Worker) foundNoRoom(err error) {
	if !noRoom(err) {
		return
	}
	w.full.note()
	for _, l := range w.levels {
		if l.what != holdDisk {
			continue
		}
		l.mu.Lock()
		l.mark.Look(0)
		l.low = true
		w.gate.hold(holdDisk, "a write found no room: "+err.Error())
		l.mu.Unlock()
	}
}

// admit holds the gate while there is too little of something, until ctx ends. It has
// looked once when begun is called.
func (w *Worker) admit(ctx context.Context, begun func()) {
	for _, l := range w.levels {
		w.look(l, true)
	}
	begun()
	if len(w.levels) == 0 {
		return
	}
	pulse := w.dog.Watch("watch over disk and memory", admitBound)
	defer pulse.End()
	timer := time.NewTimer(admitEvery)
	defer timer.Stop()
	for {
		pulse.Touch()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		next := admitEvery
		for _, l := range w.levels {
			if w.look(l, true) {
				next = lowEvery
			}
		}
		timer.Reset(next)
	}
}

// look takes one value, and reports whether it is too little. What can't be told is taken
// for too little: a disk that doesn't answer is none to begin work on. One that is low is
// believed to have enough again only where that is asked for.
func (w *Worker) look(l *level, again bool) (low bool) {
	have, err := l.ask() // which may take as long as it likes
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.low && !again {
		return true
	}
	if err != nil {
		w.gate.hold(l.what, l.text+" can't be told: "+err.Error()+"; a lowest level of 0 goes on without")
		l.mark.Look(0)
		l.low = true
		w.Log.Error().Err(err).Msg("no new trials: " + l.text + " can't be told")
		return true
	}
	low, changed := l.mark.Look(have)
	text := l.mark.Text(l.text, have)
	switch {
	case low:
		w.gate.hold(l.what, text)
		if changed {
			w.Log.Warn().Msg("no new trials: " + text)
		}
	case changed:
		w.gate.free(l.what)
		w.Log.Info().Msg("new trials are taken again: " + text)
	}
	l.low = low
	return low
}
