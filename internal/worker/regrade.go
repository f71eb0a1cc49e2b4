// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
)

// lookBack finds out why a later epoch of a trial was opened, and for a regrade what is
// to be graded. An epoch that nobody opened makes no sense.
func (wk *work) lookBack(ctx context.Context) error {
	job := wk.lease.Job()
	if job.Epoch == 1 {
		return nil
	}
	by, err := wk.w.shared.openedBy(ctx, job.Run, job.Trial, job.Epoch)
	if err != nil {
		return err
	}
	if by.Kind != bundle.ControlRegrade {
		return nil
	}
	commit, err := wk.agentsCommit(ctx, job.Trial, job.Epoch)
	if err != nil {
		return err
	}
	prefix := wk.keys.AttemptFiles(wk.row.TaskID, wk.row.TrialIndex, commit.Attempt)
	wk.earlier = &trial.Earlier{
		Commit: *commit, Pack: dispatch.GradingPack(*by, wk.row.Pack),
		Open: func(ctx context.Context, e bundle.IndexEntry) (io.ReadCloser, error) {
			return bundle.OpenFile(ctx, wk.w.Store, prefix, e)
		},
	}
	return nil
}

// agentsCommit returns the commit of the attempt that is graded in a later epoch.
func (wk *work) agentsCommit(ctx context.Context, trialID string, epoch int) (*bundle.Commit, error) {
	before, err := bundle.FindCommit(ctx, wk.w.Store, wk.keys, trialID, epoch-1)
	if err != nil {
		return nil, err
	}
	if before == nil {
		return nil, permanent{fmt.Errorf("epoch %d is to grade epoch %d of trial %s, which has no commit", epoch, epoch-1, trialID)}
	}
	return dispatch.AgentsCommit(ctx, wk.w.Store, wk.keys, before)
}

// prepareRegrade fetches what an attempt without an agent needs: no agent files, and of
// its secrets those that there are, to keep them out of what is stored.
func (wk *work) prepareRegrade(cfg *trial.Config) *trial.EarlyFailure {
	infra := func(err error) *trial.EarlyFailure {
		return &trial.EarlyFailure{Ending: trial.InfraFailed, Err: err}
	}
	var err error
	if cfg.Task, err = wk.w.shared.gradingTask(wk.ctx, wk.earlier.Pack, wk.row, wk.holdPack); err != nil {
		return infra(fmt.Errorf("task: %w", err))
	}
	if err := wk.taskSecrets(cfg); err != nil {
		return infra(err)
	}
	cfg.Secrets, _ = trial.SecretsFrom(wk.rec.Run.Agent.Secrets)
	commit := wk.earlier.Commit
	prefix := wk.keys.AttemptFiles(wk.row.TaskID, wk.row.TrialIndex, commit.Attempt)
	err = wk.w.again(wk.ctx, wk.w.StoreRetry, func(ctx context.Context) error {
		wk.earlier.Index, err = bundle.ReadIndex(ctx, wk.w.Store, prefix)
		return err
	})
	if err == nil && wk.earlier.Index.SHA256 != commit.IndexSHA256 {
		err = &bundle.MismatchError{Path: bundle.IndexName, Problem: "is not the one that was committed"}
	}
	if err != nil {
		return infra(fmt.Errorf("attempt %d, which is to be graded: %w", commit.Attempt, err))
	}
	if cfg.Environment, err = wk.w.shared.environment(wk.ctx, wk.rec); err != nil {
		return &trial.EarlyFailure{Ending: trial.ProvisionFailed, Err: err}
	}
	return nil
}

// openedBy returns the decision that opened a later epoch. What is kept of the run's
// decisions is read again when it doesn't have it.
func (s *shared) openedBy(ctx context.Context, run, trialID string, epoch int) (*bundle.Control, error) {
	for range 2 {
		records, err := s.control.Get(ctx, run, func(ctx context.Context) ([]bundle.Control, error) {
			ctx, cancel := context.WithTimeout(ctx, storeTimeout)
			defer cancel()
			return bundle.ReadControl(ctx, s.w.Store, bundle.Keys{Run: run})
		})
		if err != nil {
			return nil, err
		}
		if c := bundle.OpenedBy(records, trialID, epoch); c != nil {
			return c, nil
		}
		s.control.Forget(run)
	}
	return nil, permanent{fmt.Errorf("no control record of run %s opens epoch %d of trial %s", run, epoch, trialID)}
}

// gradingTask returns the task of a row from the pack that grades it, where the row may
// stand somewhere else than in the pack of the plan.
func (s *shared) gradingTask(ctx context.Context, sha256 string, row bundle.PlanRow, hold holder) (*manifest.Task, error) {
	pack, err := s.pack(ctx, sha256, hold)
	if err != nil {
		return nil, err
	}
	task, err := pack.Task(refOf(row))
	if err == nil || sha256 == row.Pack {
		return task, err
	}
	refs, err := s.refs.Get(ctx, sha256, pack.Index)
	if err != nil {
		return nil, err
	}
	ref, ok := refs[row.TaskID]
	if !ok {
		return nil, errors.New("the pack that grades does not have it")
	}
	return pack.Task(ref)
}
