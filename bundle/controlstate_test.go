// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

func ptr[T any](v T) *T { return &v }

// decided is a record of a kind, with args by name and value.
func decided(kind string, args ...any) bundle.Control {
	c := bundle.Control{Kind: kind, Args: map[string]any{}}
	for i := 0; i < len(args); i += 2 {
		c.Args[args[i].(string)] = args[i+1]
	}
	return c
}

func TestFoldControl(t *testing.T) {
	pause, resume := decided(bundle.ControlPause), decided(bundle.ControlResume)
	cancel := decided(bundle.ControlCancel)
	forBudget := decided(bundle.ControlPause, bundle.ArgReason, bundle.ReasonBudget)
	forDeadline := decided(bundle.ControlStop, bundle.ArgReason, bundle.ReasonDeadline)
	for name, c := range map[string]struct {
		records       []bundle.Control
		paused, ended int // rev of the decision that holds, 0 for none
		priority      string
		limits        bundle.LimitChanges
	}{
		"nothing was decided":                      {},
		"a pause holds":                            {records: []bundle.Control{pause}, paused: 1},
		"the last pause is the one":                {records: []bundle.Control{pause, forBudget}, paused: 2},
		"a resume ends a pause":                    {records: []bundle.Control{pause, resume}},
		"a cancelled run is not paused":            {records: []bundle.Control{pause, cancel}, ended: 2},
		"a cancelled run can't be paused":          {records: []bundle.Control{cancel, pause}, ended: 1},
		"a resume takes a cancelled run up":        {records: []bundle.Control{cancel, resume}},
		"and it can be paused again":               {records: []bundle.Control{cancel, resume, pause}, paused: 3},
		"unknown kinds are passed over":            {records: []bundle.Control{pause, decided("hurry"), decided(bundle.ControlRetry)}, paused: 1},
		"the last priority counts":                 {records: []bundle.Control{decided(bundle.ControlPriority, "priority", "low"), decided(bundle.ControlPriority, "priority", "high")}, priority: "high"},
		"limits add up":                            {records: []bundle.Control{decided(bundle.ControlLimits, "max_in_flight", 3.0, "later", "x"), decided(bundle.ControlLimits, "max_budget_usd", 0.0)}, limits: bundle.LimitChanges{MaxInFlight: ptr(3), MaxBudgetUSD: ptr(0.0)}},
		"another budget ends its pause":            {records: []bundle.Control{forBudget, decided(bundle.ControlLimits, "max_budget_usd", 9.0)}, limits: bundle.LimitChanges{MaxBudgetUSD: ptr(9.0)}},
		"another limit doesn't":                    {records: []bundle.Control{forBudget, decided(bundle.ControlLimits, "deadline_s", 9.0)}, paused: 1, limits: bundle.LimitChanges{DeadlineS: ptr(9.0)}},
		"another budget ends no person's pause":    {records: []bundle.Control{forBudget, pause, decided(bundle.ControlLimits, "max_budget_usd", 9.0)}, paused: 2, limits: bundle.LimitChanges{MaxBudgetUSD: ptr(9.0)}},
		"another deadline ends its stop":           {records: []bundle.Control{forDeadline, decided(bundle.ControlLimits, "deadline_s", 9.0)}, limits: bundle.LimitChanges{DeadlineS: ptr(9.0)}},
		"another deadline takes up no cancelled":   {records: []bundle.Control{cancel, decided(bundle.ControlLimits, "deadline_s", 9.0)}, ended: 1, limits: bundle.LimitChanges{DeadlineS: ptr(9.0)}},
		"a stop by somebody else is a stop as any": {records: []bundle.Control{decided(bundle.ControlStop)}, ended: 1},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.records {
				c.records[i].Rev = i + 1
			}
			s, err := bundle.FoldControl(c.records)
			if err != nil {
				t.Fatal(err)
			}
			rev := func(c *bundle.Control) int {
				if c == nil {
					return 0
				}
				return c.Rev
			}
			if rev(s.Paused) != c.paused || rev(s.Ended) != c.ended || s.Held() != (c.paused+c.ended > 0) {
				t.Errorf("paused by %d, ended by %d, held %v; want %d, %d", rev(s.Paused), rev(s.Ended), s.Held(), c.paused, c.ended)
			}
			if s.Priority != c.priority || !s.Limits.Same(c.limits) || s.Rev != len(c.records) {
				t.Errorf("got %+v", s)
			}
		})
	}
}

func TestFoldControlRefusesWhatCanNotBe(t *testing.T) {
	for _, c := range []bundle.Control{
		decided(bundle.ControlPriority), decided(bundle.ControlPriority, "priority", 5.0),
		decided(bundle.ControlLimits, "max_in_flight", "many"), decided(bundle.ControlLimits, "max_in_flight", 1.5),
		decided(bundle.ControlLimits, "max_budget_usd", -1.0), decided(bundle.ControlLimits, "deadline_s", 1e12),
	} {
		c.Rev = 1
		if _, err := bundle.FoldControl([]bundle.Control{c}); err == nil || !strings.Contains(err.Error(), "control record 1: "+c.Kind) {
			t.Errorf("%v: %v", c.Args, err)
		}
	}
	if err := (bundle.LimitChanges{MaxStartsPerSecond: ptr(math.NaN())}).Validate(); err == nil {
		t.Error("a rate that is no number is fine")
	}
}

func TestLimitsGoIntoARecordAndBack(t *testing.T) {
	l := bundle.LimitChanges{MaxInFlight: ptr(0), MaxStartsPerSecond: ptr(0.5), DeadlineS: ptr(90.0)}
	s, err := bundle.FoldControl([]bundle.Control{{Kind: bundle.ControlLimits, Args: l.Args()}})
	if err != nil || !s.Limits.Same(l) || s.Limits.MaxBudgetUSD != nil {
		t.Errorf("%+v, %v", s.Limits, err)
	}
	if d, ok := s.Limits.Deadline(); !ok || d != 90*time.Second {
		t.Errorf("deadline %s, %v", d, ok)
	}
	if l.Empty() || !(bundle.LimitChanges{}).Empty() {
		t.Error("empty is not empty")
	}
}

func TestParseAttempt(t *testing.T) {
	keys := bundle.Keys{Run: "r"}
	for key, want := range map[string]struct {
		trial   string
		attempt int
		end, ok bool
	}{
		keys.Claim("ab", 12):                 {"ab", 12, false, true},
		keys.AttemptEnd("ab", 3):             {"ab", 3, true, true},
		keys.AllAttempts() + "ab/x.json":     {"ab", 0, false, false},
		keys.AllAttempts() + "ab":            {"", 0, false, false},
		bundle.Keys{Run: "s"}.Claim("ab", 1): {"", 0, false, false},
	} {
		trial, n, end, ok := keys.ParseAttempt(key)
		if ok != want.ok || ok && (trial != want.trial || n != want.attempt || end != want.end) {
			t.Errorf("%s: %s %d %v %v", key, trial, n, end, ok)
		}
	}
}
