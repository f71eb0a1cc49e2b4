// SPDX-License-Identifier: Apache-2.0

package lscmd

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/fleet"
	"github.com/tidemill/tidemill/cmd/internal/logview"
	"github.com/tidemill/tidemill/cmd/internal/trials"
)

var errNoRun = errors.New("--failed, --unscored, --missing and --task choose among the trials of a run, and none is named")

// line is a trial as JSON.
type line struct {
	RunID      string   `json:"run_id"`
	TaskID     string   `json:"task_id"`
	TrialIndex int      `json:"trial_index"`
	TrialID    string   `json:"trial_id"`
	State      string   `json:"state"` // passed, failed, unscored, missing, running
	Status     string   `json:"status,omitempty"`
	Reason     string   `json:"termination_reason,omitempty"`
	Class      string   `json:"failure_class,omitempty"`
	Phase      string   `json:"phase,omitempty"`  // that runs now, or that failed
	Worker     string   `json:"worker,omitempty"` // of a fleet, that runs it now
	Score      *float64 `json:"score"`
	Latency    *float64 `json:"latency_s"`
	Attempts   int      `json:"attempts"`
	Epoch      int      `json:"epoch"` // of the result
	Reopened   bool     `json:"reopened,omitempty"`
	Detail     string   `json:"detail,omitempty"`
}

func newLine(t trials.Trial, running map[string]fleet.Place) line {
	l := line{
		RunID: t.Run, TaskID: t.Row.TaskID, TrialIndex: t.Row.TrialIndex, TrialID: t.Row.TrialID,
		State: string(t.State()), Attempts: t.Attempts, Epoch: t.Epoch,
	}
	if c := t.Commit; c != nil {
		o := c.Outcome
		l.Status, l.Reason, l.Class, l.Phase, l.Detail = string(o.Status), o.TerminationReason, string(o.FailureClass), o.Phase, o.Detail
		latency := float64(c.Metrics.LatencyTotalS.Millis()) / 1000
		l.Score, l.Latency, l.Epoch, l.Reopened = c.Grade.Score, &latency, c.Epoch, c.Epoch < t.Epoch
		return l
	}
	if r, ok := running[t.Row.TrialID]; ok {
		l.State, l.Phase, l.Worker, l.Attempts = "running", r.Phase, r.Worker, max(l.Attempts, r.Attempt)
	}
	return l
}

// printer writes trials as they come. Columns that have a known width stand before the
// one that hasn't, so that no line has to wait for the others.
type printer struct {
	out     *bufio.Writer
	enc     *json.Encoder // nil for people
	color   bool
	running map[string]fleet.Place
	lines   int
}

func newPrinter(w io.Writer, asJSON bool, running map[string]fleet.Place) *printer {
	p := &printer{out: bufio.NewWriter(w), running: running, color: app.Color(w)}
	if asJSON {
		p.enc = json.NewEncoder(p.out)
		p.enc.SetEscapeHTML(false)
	}
	return p
}

const layout = "%-12s  %s  %-18s  %7s  %9s  %8s  %s\n"

func (p *printer) print(t trials.Trial) error {
	l := newLine(t, p.running)
	p.lines++
	if p.enc != nil {
		return p.enc.Encode(l)
	}
	if p.lines == 1 {
		fmt.Fprintf(p.out, layout, "TRIAL", "STATE   ", "REASON", "SCORE", "LATENCY", "ATTEMPTS", "TASK")
	}
	_, err := fmt.Fprintf(p.out, layout, trials.ShortID(l.TrialID), p.state(l.State), cmp.Or(l.Reason, l.Phase, "-"),
		number(l.Score, ""), number(l.Latency, "s"), strconv.Itoa(l.Attempts), logview.Visible([]byte(t.Name())))
	return err
}

var colors = map[string]string{"passed": "\x1b[32m", "failed": "\x1b[31m", "unscored": "\x1b[33m", "running": "\x1b[36m", "missing": "\x1b[2m"}

func (p *printer) state(s string) string {
	padded := fmt.Sprintf("%-8s", s)
	if !p.color {
		return padded
	}
	return colors[s] + padded + "\x1b[0m"
}

func number(v *float64, unit string) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatFloat(*v, 'f', 3, 64) + unit
}

func (p *printer) end() error {
	if p.lines == 0 && p.enc == nil {
		fmt.Fprintln(p.out, "no such trials")
	}
	return p.out.Flush()
}
