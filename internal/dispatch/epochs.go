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
	// The epochs first: a commit may come meanwhile, an epoch only after the commit of the
	// one before.
	epochs, err := Epochs(ctx, store, run)
	if err != nil {
		return 0, err
	}
	n := 0
	for info, err := range store.List(ctx, bundle.Keys{Run: run}.Commits()) {
		if err != nil {
			return 0, err
		}
		if trial, epoch, ok := bundle.ParseCommitKey(info.Key); ok && epoch == epochs.Of(trial) {
			n++
		}
	}
	return n, nil
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
