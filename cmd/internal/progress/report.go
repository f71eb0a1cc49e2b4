// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"io"
	"os"
	"time"

	"github.com/tidemill/tidemill/internal/worker"
)

// Reporter shows a person or a program how the work goes.
type Reporter interface {
	// Submitted tells of a run whose open trials are in the queue.
	Submitted(Run)
	// Listening tells where other processes find the queue.
	Listening(url string)
	// Observe takes an event of the worker.
	Observe(worker.Event)
	// Decided tells of a decision about a run that was carried out, and why it was taken.
	Decided(Decision)
	// Stopping tells that no new trial begins, and how long those that run may go on.
	Stopping(after time.Duration)
	// Close ends the show. It returns when nothing is drawn any more.
	Close()
}

// Run is what is told of a run when it begins.
type Run struct {
	RunID     string `json:"run_id"`
	Group     string `json:"group,omitempty"`
	Continued bool   `json:"continued"`
	Tasks     int    `json:"tasks"`
	Trials    int    `json:"trials"`
	Done      int    `json:"done"` // before this command
}

// Decision is one about a run, such as a pause.
type Decision struct {
	RunID string `json:"run_id"`
	Kind  string `json:"kind"`
	Rev   int    `json:"rev"`
	By    string `json:"by"`
	Why   string `json:"why,omitempty"`
}

// NewReporter returns a bar on a terminal, and JSON lines for everybody else. Counting
// is the tracker's, which is told first.
func NewReporter(w io.Writer, t *Tracker) Reporter {
	if s, ok := w.(*Screen); ok {
		return newBar(s, t)
	}
	return &Lines{W: w, Tracker: t}
}

// colored wraps text in a colour where colours are wanted.
func colored(on bool, color, text string) string {
	if !on || text == "" {
		return text
	}
	return color + text + "\x1b[0m"
}

const (
	green  = "\x1b[32m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	dim    = "\x1b[2m"
)

// asFile returns the file that a writer is, or nil.
func asFile(w io.Writer) *os.File {
	f, _ := w.(*os.File)
	return f
}
