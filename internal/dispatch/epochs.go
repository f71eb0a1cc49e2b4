// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"fmt"

	"github.com/tidemill/tidemill/bundle"
)

// Epochs returns the current epochs of a run's trials.
func Epochs(ctx context.Context, store bundle.Store, run string) (bundle.Epochs, error) {
	records, err := bundle.ReadControl(ctx, store, bundle.Keys{Run: run})
	if err != nil {
		return nil, err
	}
	return bundle.CurrentEpochs(records)
}

// CountDone counts the trials of a run whose current epoch has its commit. It lists keys
// and reads no commit.
func CountDone(ctx context.Context, store bundle.Store, run string) (int, error) {
	n, _, err := LookAt(ctx, store, run)
	return n, err
}

// LookAt is [CountDone], and what the decisions about the run come to.
func LookAt(ctx context.Context, store bundle.Store, run string) (done int, s bundle.ControlState, err error) {
	// The epochs first: a commit may come meanwhile, an epoch only after the commit of the
	// one before.
	records, err := bundle.ReadControl(ctx, store, bundle.Keys{Run: run})
	if err != nil {
		return 0, s, err
	}
	epochs, err := bundle.CurrentEpochs(records)
	if err != nil {
		return 0, s, err
	}
	if s, err = bundle.FoldControl(records); err != nil {
		return 0, s, err
	}
	for info, err := range store.List(ctx, bundle.Keys{Run: run}.Commits()) {
		if err != nil {
			return 0, s, err
		}
		if trial, epoch, ok := bundle.ParseCommitKey(info.Key); ok && epoch == epochs.Of(trial) {
			done++
		}
	}
	return done, s, nil
}

// AgentsCommit returns the commit of the attempt in which the agent ran: the one that is
// given, or the one whose leavings it graded again.
func AgentsCommit(ctx context.Context, store bundle.Store, keys bundle.Keys, c *bundle.Commit) (*bundle.Commit, error) {
	if c.Regraded == nil {
		return c, nil
	}
	was, err := bundle.FindCommit(ctx, store, keys, c.TrialID, c.Regraded.Epoch)
	switch {
	case err != nil:
		return nil, err
	case was == nil, was.Regraded != nil:
		return nil, fmt.Errorf("epoch %d of trial %s is said to have graded epoch %d, which has no commit of an agent's attempt", c.Epoch, c.TrialID, c.Regraded.Epoch)
	}
	return was, nil
}
