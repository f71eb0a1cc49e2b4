// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// FindCommit returns the commit of a trial's epoch, nil when there is none.
func FindCommit(ctx context.Context, s Store, keys Keys, trial string, epoch int) (*Commit, error) {
	c, err := ReadRecord[Commit](ctx, s, keys.Commit(trial, epoch))
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("commit of epoch %d of trial %s: %w", epoch, trial, err)
	case c.TrialID != trial || c.Epoch != epoch:
		return nil, fmt.Errorf("%s is the commit of epoch %d of trial %s", keys.Commit(trial, epoch), c.Epoch, c.TrialID)
	}
	return &c, nil
}

// WriteCommit commits an attempt, and returns the commit that counts and whether it
// is ours. It can be repeated: our own commit, found because an earlier answer was
// lost, is won. An error means that nothing is known: repeat.
func WriteCommit(ctx context.Context, s Store, keys Keys, c Commit) (winner Commit, won bool, err error) {
	c.SchemaVersion = cmp.Or(c.SchemaVersion, SchemaVersion)
	c.At = c.At.UTC()
	err = CreateRecord(ctx, s, keys.Commit(c.TrialID, c.Epoch), c)
	if err == nil {
		return c, true, nil
	}
	there, findErr := FindCommit(ctx, s, keys, c.TrialID, c.Epoch)
	switch {
	case findErr == nil && there != nil:
		return *there, there.Nonce == c.Nonce && there.Attempt == c.Attempt, nil
	case findErr != nil && errors.Is(err, ErrExists):
		return Commit{}, false, findErr
	}
	return Commit{}, false, fmt.Errorf("commit epoch %d of trial %s: %w", c.Epoch, c.TrialID, err)
}

// WriteResult writes result.json, replacing that of an earlier epoch.
func WriteResult(ctx context.Context, s Store, keys Keys, r Result) error {
	r.SchemaVersion = cmp.Or(r.SchemaVersion, SchemaVersion)
	if err := PutRecord(ctx, s, keys.Result(r.TaskID, r.TrialIndex), r); err != nil {
		return fmt.Errorf("result of trial %s: %w", r.TrialID, err)
	}
	return nil
}
