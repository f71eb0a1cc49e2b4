// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// decision is one about the run that still holds.
type decision struct {
	Rev    int       `json:"rev"`
	Kind   string    `json:"kind"`
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Detail string    `json:"detail,omitempty"`

	words string
}

func newDecision(c *bundle.Control) *decision {
	if c == nil {
		return nil
	}
	return &decision{Rev: c.Rev, Kind: c.Kind, At: c.At, By: c.By, Reason: c.Reason(), Detail: c.Detail(), words: producer.Told(c)}
}

// limits are those that hold now; absent ones are none.
type limits struct {
	MaxInFlight        int        `json:"max_in_flight,omitempty"`
	MaxStartsPerSecond float64    `json:"max_starts_per_second,omitempty"`
	MaxBudgetUSD       float64    `json:"max_budget_usd,omitempty"`
	DeadlineAt         *time.Time `json:"deadline_at,omitempty"`
}

// steered is what the decisions about a run come to.
type steered struct {
	Paused   *decision      `json:"paused"`
	Ended    *decision      `json:"ended"`
	Priority queue.Priority `json:"priority"`
	Limits   limits         `json:"limits"`
}

func steer(rec *manifest.RunRecord, s bundle.ControlState) steered {
	run, err := dispatch.QueueRun(*rec)
	if err != nil {
		run.Priority = queue.Priority(rec.Run.Priority) // of a newer version; there is more to tell
	}
	run = dispatch.Steer(run, s)
	out := steered{
		Paused: newDecision(s.Paused), Ended: newDecision(s.Ended), Priority: run.Priority,
		Limits: limits{
			MaxInFlight: run.Limits.MaxInFlight, MaxStartsPerSecond: run.Limits.MaxStartsPerSecond,
			MaxBudgetUSD: dispatch.Budget(rec, s),
		},
	}
	if at := dispatch.Deadline(rec, s); !at.IsZero() {
		at = at.UTC()
		out.Limits.DeadlineAt = &at
	}
	return out
}

// words are the limits for people, "" without any.
func (l limits) words() string {
	var parts []string
	if l.MaxInFlight > 0 {
		parts = append(parts, fmt.Sprintf("%d in flight", l.MaxInFlight))
	}
	if l.MaxStartsPerSecond > 0 {
		parts = append(parts, fmt.Sprintf("%g starts a second", l.MaxStartsPerSecond))
	}
	if l.MaxBudgetUSD > 0 {
		parts = append(parts, fmt.Sprintf("%g USD", l.MaxBudgetUSD))
	}
	if l.DeadlineAt != nil {
		parts = append(parts, "until "+l.DeadlineAt.Format(time.DateTime)+" UTC")
	}
	return strings.Join(parts, ", ")
}
