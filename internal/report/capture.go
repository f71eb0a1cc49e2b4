// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tidemill/tidemill/bundle"
)

// Where captured service logs come from.
const (
	FromTrial     = "trial_body"
	FromProvision = "provision_failure"
	FromRun       = "shared_stack_materialise"
)

// Capture is one capture of service logs.
type Capture struct {
	TaskID        *string          `json:"task_id"`     // nil for a stack of the run
	TrialIndex    *int             `json:"trial_index"` // nil likewise
	Source        string           `json:"source"`
	CaptureReason *string          `json:"capture_reason"`
	TotalBytes    int64            `json:"total_bytes"`
	Services      map[string]int64 `json:"services"`
}

// Captures is captured_service_logs: always there, all zero for a clean run.
type Captures struct {
	Captures        int64            `json:"captures"`
	TotalBytes      int64            `json:"total_bytes"`
	PerServiceBytes map[string]int64 `json:"per_service_bytes"`
	// Entries are sorted by task, trial and source. The sidecar, where there is one,
	// has all entries in plan order, and Entries the first of them.
	Entries []Capture `json:"entries"`
	Sidecar *string   `json:"sidecar"`
}

// captureOf is the capture that a commit tells of, if it does. The outcome decides on
// its source.
func captureOf(c *bundle.Commit) (Capture, bool) {
	services := map[string]int64{}
	for name, n := range c.Metrics.CapturedServiceLogs {
		if n >= 0 {
			services[name] = n
		}
	}
	if len(services) == 0 {
		return Capture{}, false
	}
	entry := Capture{TaskID: &c.TaskID, TrialIndex: &c.TrialIndex, Source: FromTrial, Services: services}
	if c.Outcome.TerminationReason == bundle.ReasonProvisionError {
		reason := bundle.ReasonProvisionError
		entry.Source, entry.CaptureReason = FromProvision, &reason
	}
	return entry, true
}

// captures sums them up.
type captures struct {
	list       *list[Capture]
	total      int64
	perService map[string]int64
}

func newCaptures(spool Spool) *captures {
	return &captures{list: newList[Capture](spool, CapturesSidecar), perService: map[string]int64{}}
}

func (c *captures) add(entry Capture) error {
	entry.TotalBytes = 0
	for name, n := range entry.Services {
		entry.TotalBytes = addUpTo(entry.TotalBytes, n)
		c.perService[name] = addUpTo(c.perService[name], n)
	}
	c.total = addUpTo(c.total, entry.TotalBytes)
	if err := c.list.add(entry); err != nil {
		return fmt.Errorf("list captured service logs: %w", err)
	}
	return nil
}

// addUpTo adds byte counts, which are not negative, and stops at the largest number.
func addUpTo(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func (c *captures) result() Captures {
	// Stable: captures of one source and trial stay as they were given.
	slices.SortStableFunc(c.list.inline, func(a, b Capture) int {
		return cmp.Or(
			cmp.Compare(orElse(a.TaskID, ""), orElse(b.TaskID, "")),
			cmp.Compare(orElse(a.TrialIndex, -1), orElse(b.TrialIndex, -1)),
			cmp.Compare(a.Source, b.Source),
		)
	})
	return Captures{
		Captures: c.list.count, TotalBytes: c.total, PerServiceBytes: c.perService,
		Entries: c.list.inline, Sidecar: c.list.sidecar(),
	}
}

func orElse[T any](p *T, instead T) T {
	if p == nil {
		return instead
	}
	return *p
}
