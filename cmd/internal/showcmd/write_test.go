// SPDX-License-Identifier: Apache-2.0

package showcmd

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/progress"
)

func (d *description) says(t *testing.T, want string, yes bool) {
	t.Helper()
	var out bytes.Buffer
	if err := d.write(&out); err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(want).Match(out.Bytes()) != yes {
		t.Errorf("match of %q is not %t in\n%s", want, yes, out.String())
	}
}

// What two records say in the same words is told once.
func TestNothingIsSaidTwice(t *testing.T) {
	o := bundle.Outcome{Status: "timeout", TerminationReason: "timeout", Detail: "the agent ran out of time"}
	d := &description{
		TrialID: "t", TaskID: "a", RunID: "r", State: "failed", Epoch: 1,
		Commit:   &bundle.Commit{Epoch: 1, Attempt: 1, Outcome: o, Grade: bundle.Grade{Reasons: o.Detail}},
		Attempts: []attempt{{Attempt: 1, Epoch: 1, Worker: "w", Counts: true, Outcome: &o}},
	}
	d.says(t, `(?m)^outcome +timeout$`, true)
	d.says(t, `(?m)^attempts +1, timeout, counts, on w$`, true)
	d.says(t, `(?m)^detail +the agent ran out of time$`, true)
	d.says(t, `(?m)^reasons`, false)
	d.Commit.Grade.Reasons = "2 of 3 lines are right"
	d.says(t, `(?m)^reasons +2 of 3 lines are right$`, true)
	d.Commit.Outcome.Status = bundle.Completed
	d.says(t, `(?m)^outcome +completed, timeout$`, true)
}

// Where a trial of a fleet runs is told.
func TestWhereATrialRuns(t *testing.T) {
	d := &description{TrialID: "t", TaskID: "a", RunID: "r", Running: &progress.Running{Attempt: 1, Phase: "agent", Since: time.Now().Add(-5 * time.Minute)}}
	d.says(t, `(?m)^state +running: agent, began 5m.* ago$`, true)
	d.Worker = "vm-1"
	d.says(t, `(?m)^state +running on vm-1 \(agent\), began 5m.* ago$`, true)
}
