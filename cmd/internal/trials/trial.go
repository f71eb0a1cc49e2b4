// SPDX-License-Identifier: Apache-2.0

// Package trials finds runs and trials in a store by what a person calls them, and says
// what became of them.
package trials

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemill/tidemill/bundle"
)

// Trial is a trial of a run, and what became of it.
type Trial struct {
	Run string
	Row bundle.PlanRow
	// Epoch is the current one; the commit that is shown may be of an earlier one.
	Epoch int
	// Commit is that of the highest epoch that has one; nil: there is none.
	Commit *bundle.Commit
	// Attempts is how many were begun: up to the one that counts, or all where none does.
	Attempts int
}

// State is what became of a trial, in one word.
type State string

// The states.
const (
	Passed   State = "passed"
	Failed   State = "failed"
	Unscored State = "unscored" // it ended without a score
	Missing  State = "missing"  // it has no commit
)

// State returns what became of the trial.
func (t Trial) State() State {
	switch {
	case t.Commit == nil:
		return Missing
	case !t.Commit.Outcome.Scored:
		return Unscored
	case t.Commit.Grade.BinaryPass:
		return Passed
	default:
		return Failed
	}
}

// Name is what a person calls the trial within its run.
func (t Trial) Name() string { return Name(t.Row.TaskID, t.Row.TrialIndex) }

// Name is TASK#INDEX.
func Name(task string, index int) string { return fmt.Sprintf("%s#%d", task, index) }

// ShortID is the beginning of a trial's id: enough to name it by.
func ShortID(trialID string) string { return trialID[:12] }

// Counted is the attempt whose files are looked at: the one that was committed, else the
// last one; 0 where there is none.
func (t Trial) Counted() int {
	if t.Commit != nil {
		return t.Commit.Attempt
	}
	return t.Attempts
}

// fill finds out what became of the trial of a row.
func fill(ctx context.Context, s bundle.Store, run string, row bundle.PlanRow, epoch int) (Trial, error) {
	t := Trial{Run: run, Row: row, Epoch: epoch}
	keys := bundle.Keys{Run: run}
	var err error
	if t.Commit, err = committed(ctx, s, keys, row.TrialID, epoch); err != nil {
		return t, err
	}
	if t.Commit != nil {
		t.Attempts = t.Commit.Attempt
		return t, nil
	}
	t.Attempts, err = countAttempts(ctx, s, keys, row.TrialID)
	return t, err
}

// committed returns the commit of the highest epoch that has one, up to a given epoch.
func committed(ctx context.Context, s bundle.Store, keys bundle.Keys, trial string, epoch int) (*bundle.Commit, error) {
	for ; epoch >= 1; epoch-- {
		if c, err := bundle.FindCommit(ctx, s, keys, trial, epoch); c != nil || err != nil {
			return c, err
		}
	}
	return nil, nil
}

// countAttempts counts claims, without reading them.
func countAttempts(ctx context.Context, s bundle.Store, keys bundle.Keys, trial string) (int, error) {
	n := 0
	for info, err := range s.List(ctx, keys.Attempts(trial)) {
		if err != nil {
			return 0, fmt.Errorf("attempts of trial %s: %w", trial, err)
		}
		if strings.HasSuffix(info.Key, ".json") && !strings.HasSuffix(info.Key, ".end.json") {
			n++
		}
	}
	return n, nil
}
