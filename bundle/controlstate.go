// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Args that several kinds of control records have.
const (
	// ArgReason of a pause, cancel or stop: why, in a word. [PauseBreaker] and
	// [ReasonBudget] are pauses of ours, [ReasonDeadline] is a stop of ours.
	ArgReason = "reason"
	// ArgDetail says the same in a sentence for people.
	ArgDetail = "detail"
	// ArgPriority of a priority.
	ArgPriority = "priority"
)

// PauseBreaker is the reason of a pause because too many attempts fail for want of
// infrastructure.
const PauseBreaker = "breaker"

// ControlState is what the decisions about a run come to, taken in order.
type ControlState struct {
	// Rev of the last decision, 0 without any.
	Rev int
	// Paused is the decision because of which no trial begins, nil while they may.
	Paused *Control
	// Ended is the cancel or stop that ended the run, nil while it goes on. A run that
	// has ended is not paused.
	Ended *Control
	// Priority in place of the run file's; "" without one.
	Priority string
	// Limits in place of the run file's.
	Limits LimitChanges
}

// Held reports whether no trial of the run may begin.
func (s ControlState) Held() bool { return s.Paused != nil || s.Ended != nil }

// LimitChanges are limits of a run that take the place of the run file's: nil leaves
// what was there, 0 is no limit.
type LimitChanges struct {
	MaxInFlight        *int     `json:"max_in_flight,omitempty"`
	MaxStartsPerSecond *float64 `json:"max_starts_per_second,omitempty"`
	MaxBudgetUSD       *float64 `json:"max_budget_usd,omitempty"`
	// DeadlineS counts from the run's creation, in seconds.
	DeadlineS *float64 `json:"deadline_s,omitempty"`
}

// Empty reports whether nothing is changed.
func (c LimitChanges) Empty() bool { return c == LimitChanges{} }

// Over returns what comes of changes that were made on top of earlier ones.
func (c LimitChanges) Over(before LimitChanges) LimitChanges {
	if c.MaxInFlight != nil {
		before.MaxInFlight = c.MaxInFlight
	}
	if c.MaxStartsPerSecond != nil {
		before.MaxStartsPerSecond = c.MaxStartsPerSecond
	}
	if c.MaxBudgetUSD != nil {
		before.MaxBudgetUSD = c.MaxBudgetUSD
	}
	if c.DeadlineS != nil {
		before.DeadlineS = c.DeadlineS
	}
	return before
}

// Same reports whether both change the same limits to the same values.
func (c LimitChanges) Same(d LimitChanges) bool {
	return same(c.MaxInFlight, d.MaxInFlight) && same(c.MaxStartsPerSecond, d.MaxStartsPerSecond) &&
		same(c.MaxBudgetUSD, d.MaxBudgetUSD) && same(c.DeadlineS, d.DeadlineS)
}

func same[T comparable](a, b *T) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

// Deadline returns the changed deadline, and false where it is as it was.
func (c LimitChanges) Deadline() (time.Duration, bool) {
	if c.DeadlineS == nil {
		return 0, false
	}
	return time.Duration(*c.DeadlineS * float64(time.Second)), true
}

// maxLimit is the largest limit that makes sense anywhere; a deadline of it is 30 years.
const maxLimit = 1e9

// Validate reports the first limit that is wrong.
func (c LimitChanges) Validate() error {
	bad := func(name string, v float64) error {
		return fmt.Errorf("%s %v: want 0, which is none, to %d", name, v, int(maxLimit))
	}
	if n := c.MaxInFlight; n != nil && (*n < 0 || *n > maxLimit) {
		return bad("max_in_flight", float64(*n))
	}
	for _, l := range []struct {
		name  string
		value *float64
	}{{"max_starts_per_second", c.MaxStartsPerSecond}, {"max_budget_usd", c.MaxBudgetUSD}, {"deadline_s", c.DeadlineS}} {
		if l.value != nil && (math.IsNaN(*l.value) || *l.value < 0 || *l.value > maxLimit) {
			return bad(l.name, *l.value)
		}
	}
	return nil
}

// Args are the args of a control record of kind limits.
func (c LimitChanges) Args() map[string]any {
	args := map[string]any{}
	if c.MaxInFlight != nil {
		args["max_in_flight"] = float64(*c.MaxInFlight) // as it is read again
	}
	for name, value := range map[string]*float64{
		"max_starts_per_second": c.MaxStartsPerSecond, "max_budget_usd": c.MaxBudgetUSD, "deadline_s": c.DeadlineS,
	} {
		if value != nil {
			args[name] = *value
		}
	}
	return args
}

func parseLimits(c Control) (l LimitChanges, err error) {
	body, err := json.Marshal(c.Args)
	if err == nil {
		err = json.Unmarshal(body, &l) // keys of newer versions are passed over
	}
	if err == nil {
		err = l.Validate()
	}
	return l, err
}

// FoldControl applies decisions, as [ReadControl] returns them, one after the other. Kinds
// that it doesn't know change nothing; one that says something that can't be is an error.
//
//   - pause holds the run until a resume. One for a budget ends, too, when a decision
//     changes the budget.
//   - cancel and stop end the run, and a resume takes it up again. A stop for the deadline
//     ends, too, when a decision changes the deadline.
func FoldControl(records []Control) (ControlState, error) {
	var s ControlState
	for i := range records {
		c := &records[i]
		s.Rev = c.Rev
		if err := s.apply(c); err != nil {
			return ControlState{}, fmt.Errorf("control record %d: %s: %w", c.Rev, c.Kind, err)
		}
	}
	return s, nil
}

func (s *ControlState) apply(c *Control) error {
	switch c.Kind {
	case ControlPause:
		if s.Ended == nil {
			s.Paused = c
		}
	case ControlResume:
		s.Paused, s.Ended = nil, nil
	case ControlCancel, ControlStop:
		s.Paused, s.Ended = nil, c
	case ControlPriority:
		word, ok := c.Args[ArgPriority].(string)
		if !ok || word == "" {
			return fmt.Errorf("args.%s is %v, want a word", ArgPriority, c.Args[ArgPriority])
		}
		s.Priority = word
	case ControlLimits:
		l, err := parseLimits(*c)
		if err != nil {
			return err
		}
		s.Limits = l.Over(s.Limits)
		if l.MaxBudgetUSD != nil && s.Paused.Reason() == ReasonBudget {
			s.Paused = nil
		}
		if l.DeadlineS != nil && s.Ended.Reason() == ReasonDeadline {
			s.Ended = nil
		}
	}
	return nil
}

// Reason is why the decision was taken, in a word; "" where it doesn't say. It may be
// asked of no decision.
func (c *Control) Reason() string { return c.arg(ArgReason) }

// Detail is why, in a sentence; "" where it doesn't say.
func (c *Control) Detail() string { return c.arg(ArgDetail) }

func (c *Control) arg(name string) string {
	if c == nil {
		return ""
	}
	text, _ := c.Args[name].(string)
	return text
}
