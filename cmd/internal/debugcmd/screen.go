// SPDX-License-Identifier: Apache-2.0

package debugcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/live"
	"github.com/tidemill/tidemill/cmd/internal/logview"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/internal/worker"
)

// screen shows a trial while it runs: phases, and between them what is printed.
type screen struct {
	printer *logview.Printer

	mu     sync.Mutex
	phase  string
	since  time.Time
	box    *trial.Live
	tails  []tail
	follow sync.WaitGroup
	err    error
}

// tail shows one of the attempt's logs.
type tail struct {
	from *worker.Tail
	into *logview.Growing
}

func newScreen(w io.Writer) *screen {
	return &screen{printer: &logview.Printer{W: w, Color: app.Color(w), Titles: true}}
}

func (s *screen) begin(of *session) {
	_ = s.printer.Line(fmt.Sprintf("%s %s: agent %s on %s, trial %s", of.run.Name, logview.Visible([]byte(trials.Name(of.target.task, of.target.index))),
		of.run.Agent.Name, of.run.Runtime.Type, of.trialID))
}

// observe takes an event of the worker. What was printed before a phase ended is shown
// before that is told.
func (s *screen) observe(e worker.Event, a *worker.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Kind == worker.Started {
		return
	}
	if s.tails == nil && a != nil {
		for _, name := range live.Logs {
			s.tails = append(s.tails, tail{a.Tail(live.LogFile(name)), &logview.Growing{P: s.printer, Name: name}})
		}
		s.follow.Go(func() { s.keepShowing(a) })
	}
	if a != nil && s.box == nil {
		s.box, _ = a.Sandbox() // it may not be open yet
	}
	s.drain()
	if e.Kind == worker.Phase && e.Phase == s.phase {
		return // it goes on: what a step left and what the workdir holds are collected one after the other
	}
	s.endPhase(e.At)
	if e.Kind == worker.Phase {
		s.phase, s.since = e.Phase, e.At
	}
}

// keepShowing looks at the logs whenever there is more in one, until the attempt ends;
// the worker sees to it that it does.
func (s *screen) keepShowing(a *worker.Attempt) {
	for version, more := 0, true; more; {
		version, more = a.Await(context.Background(), version)
		s.mu.Lock()
		s.drain()
		s.mu.Unlock()
	}
}

// drain shows all that is there.
func (s *screen) drain() {
	for _, t := range s.tails {
		if _, err := io.Copy(t.into, t.from); err != nil {
			s.err = errors.Join(s.err, err)
		}
	}
}

func (s *screen) endPhase(now time.Time) {
	if s.phase == "" {
		return
	}
	s.err = errors.Join(s.err, s.printer.Line(fmt.Sprintf("%-10s %8.3fs", s.phase, now.Sub(s.since).Seconds())))
	s.phase = ""
}

// sandbox is the attempt's, nil where none was opened.
func (s *screen) sandbox() *trial.Live {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.box
}

// end waits until all is shown.
func (s *screen) end() error {
	s.follow.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tails {
		t.from.Close()
	}
	return errors.Join(s.err, s.printer.End())
}
