// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/worker"
)

// Lines writes JSON lines: one when a run begins, and one for each attempt that ended.
// Phases would drown them.
type Lines struct {
	W       io.Writer
	Tracker *Tracker // told of every event; may be nil
	mu      sync.Mutex
}

var _ Reporter = (*Lines)(nil)

// stamp begins every line.
type stamp struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
}

type trialLine struct {
	stamp
	Run        string         `json:"run_id"`
	TaskID     string         `json:"task_id"`
	TrialIndex int            `json:"trial_index"`
	TrialID    string         `json:"trial_id"`
	Attempt    int            `json:"attempt"`
	Status     string         `json:"status,omitempty"`
	Reason     string         `json:"termination_reason,omitempty"`
	Score      *float64       `json:"score,omitempty"`
	Passed     bool           `json:"passed"`
	Latency    bundle.Seconds `json:"latency_s,omitempty"`
	Detail     string         `json:"detail,omitempty"`
}

// Observe writes the line of an event.
func (l *Lines) Observe(e worker.Event) {
	if l.Tracker != nil {
		l.Tracker.Observe(e)
	}
	if e.Kind == worker.Started || e.Kind == worker.Phase {
		return
	}
	l.write(trialLine{
		stamp: stamp{e.At.UTC(), string(e.Kind)}, Run: e.Run, TaskID: e.TaskID, TrialIndex: e.TrialIndex,
		TrialID: e.TrialID, Attempt: e.Attempt, Status: string(e.Outcome.Status), Reason: e.Outcome.TerminationReason,
		Score: e.Grade.Score, Passed: e.Grade.BinaryPass, Latency: bundle.NewSeconds(e.Latency), Detail: detail(e),
	})
}

// detail is what there is to say of an event beyond its words.
func detail(e worker.Event) string {
	if e.Why != "" {
		return e.Why
	}
	return e.Outcome.Detail
}

// Submitted writes the line of a run that begins.
func (l *Lines) Submitted(r Run) {
	l.write(struct {
		stamp
		Run
	}{now("submitted"), r})
}

// Listening writes where the queue is.
func (l *Lines) Listening(url string) {
	l.write(struct {
		stamp
		URL string `json:"url"`
	}{now("listening"), url})
}

// Decided writes the line of a decision.
func (l *Lines) Decided(d Decision) {
	l.write(struct {
		stamp
		Decision
	}{now("decided"), d})
}

// Stopping writes that the end began.
func (l *Lines) Stopping(after time.Duration) {
	l.write(struct {
		stamp
		After float64 `json:"drain_timeout_s"`
	}{now("stopping"), after.Seconds()})
}

// Close has nothing to end.
func (l *Lines) Close() {}

func now(event string) stamp { return stamp{time.Now().UTC(), event} }

func (l *Lines) write(v any) {
	body, err := json.Marshal(v)
	if err != nil {
		return // numbers and text always encode
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.W.Write(append(body, '\n')) // nobody left to tell
}
