// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
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
	// admitEvery is how often disk and memory are looked at.
	admitEvery = 5 * time.Second
	// admitBound is how long that may take, on a network disk that hangs for example.
	admitBound = time.Minute
)

// level is one of the things of which there has to be enough.
type level struct {
	what, text string
	mark       watermark.Mark
	ask        func() (int64, error)
}

// levels are those that are looked at.
func (w *Worker) levels() (list []*level) {
	if w.MinFreeDisk > 0 {
		list = append(list, &level{holdDisk, "free disk", watermark.Mark{Low: w.MinFreeDisk}, w.FreeDisk})
	}
	if w.MinFreeMemory > 0 {
		list = append(list, &level{holdMemory, "available memory", watermark.Mark{Low: w.MinFreeMemory}, w.FreeMemory})
	}
	return list
}

// admit holds the gate while there is too little of something, until ctx ends. It has
// looked once when begun is called.
func (w *Worker) admit(ctx context.Context, begun func()) {
	levels := w.levels()
	for _, l := range levels {
		w.look(l)
	}
	begun()
	if len(levels) == 0 {
		return
	}
	pulse := w.dog.Watch("watch over disk and memory", admitBound)
	defer pulse.End()
	ticker := time.NewTicker(admitEvery)
	defer ticker.Stop()
	for {
		pulse.Touch()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for _, l := range levels {
			w.look(l)
		}
	}
}

// look takes one value. What can't be told is taken for too little: a disk that doesn't
// answer is none to begin work on.
func (w *Worker) look(l *level) {
	have, err := l.ask()
	if err != nil {
		w.gate.hold(l.what, l.text+" can't be told: "+err.Error()+"; a lowest level of 0 goes on without")
		l.mark.Look(0)
		w.Log.Error().Err(err).Msg("no new trials: " + l.text + " can't be told")
		return
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
}
