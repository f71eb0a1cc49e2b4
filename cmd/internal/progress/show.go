// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/tidemill/tidemill/internal/worker"
)

// Lines writes an event as a JSON line, those that end an attempt only: phases would
// drown them.
type Lines struct {
	mu sync.Mutex
	W  io.Writer
}

type line struct {
	Time       time.Time `json:"time"`
	Event      string    `json:"event"`
	Run        string    `json:"run_id"`
	TaskID     string    `json:"task_id"`
	TrialIndex int       `json:"trial_index"`
	TrialID    string    `json:"trial_id"`
	Attempt    int       `json:"attempt"`
	Status     string    `json:"status,omitempty"`
	Reason     string    `json:"termination_reason,omitempty"`
	Score      *float64  `json:"score,omitempty"`
	Passed     bool      `json:"passed"`
	Latency    float64   `json:"latency_s,omitempty"`
	Detail     string    `json:"detail,omitempty"`
}

// Observe writes the line of an event.
func (l *Lines) Observe(e worker.Event) {
	if e.Kind == worker.Started || e.Kind == worker.Phase {
		return
	}
	detail := e.Why
	if detail == "" {
		detail = e.Outcome.Detail
	}
	body, err := json.Marshal(line{
		Time: e.At.UTC(), Event: string(e.Kind), Run: e.Run, TaskID: e.TaskID, TrialIndex: e.TrialIndex,
		TrialID: e.TrialID, Attempt: e.Attempt, Status: string(e.Outcome.Status), Reason: e.Outcome.TerminationReason,
		Score: e.Grade.Score, Passed: e.Grade.BinaryPass, Latency: e.Latency.Seconds(), Detail: detail,
	})
	if err != nil {
		return // numbers and text always encode
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.W.Write(append(body, '\n')) // nobody left to tell
}

// Bar redraws one line of a terminal until stop is closed, and clears it then.
func Bar(f *os.File, t *Tracker, stop <-chan struct{}) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		fmt.Fprint(f, "\r\x1b[2K", BarLine(t.Snapshot(), time.Now(), width(f)))
		select {
		case <-stop:
			fmt.Fprint(f, "\r\x1b[2K")
			return
		case <-tick.C:
		}
	}
}

func width(f *os.File) int {
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil || w < 20 {
		return 80
	}
	return w
}

// BarLine is what the bar shows: done of total, by outcome, running, time left.
func BarLine(s Snapshot, now time.Time, width int) string {
	c := s.Sum()
	text := fmt.Sprintf(" %d/%d  passed %d  failed %d  error %d  running %d", c.Done, c.Total, c.Passed, c.Failed, c.Errors(), len(s.Running))
	if c.Before > 0 {
		text += fmt.Sprintf("  earlier %d", c.Before)
	}
	if eta := s.ETA(now); eta > 0 {
		text += "  eta " + eta.Round(time.Second).String()
	}
	room := min(30, width-len(text)-1)
	if room < 5 {
		return text[:min(len(text), width-1)]
	}
	full := 0
	if c.Total > 0 {
		full = room * c.Done / c.Total
	}
	return strings.Repeat("█", full) + strings.Repeat("░", room-full) + text
}
