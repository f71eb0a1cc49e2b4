// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
)

// finish uploads the bundle and says what became of the attempt: commit, retry, or
// neither. It goes on although the worker is stopping, since the work is done.
func (wk *work) finish(rep trial.Report, files *bundle.Writer) {
	ctx := context.WithoutCancel(wk.ctx)
	sealed, err := wk.upload(ctx, files)
	if err != nil {
		wk.log.Error().Err(err).Msg("bundle could not be stored")
		rep = lost(fmt.Errorf("bundle could not be stored: %w", err))
	}
	if files != nil {
		defer func() {
			if err := files.Remove(); err != nil {
				wk.log.Warn().Err(err).Msg("spool could not be cleared")
			}
		}()
	}
	stored := err == nil && files != nil
	d := wk.decide(rep, stored)
	if d.commit {
		wk.commit(ctx, rep, sealed, d)
		return
	}
	wk.record(ctx, rep, d, false)
	if cause := context.Cause(wk.ctx); cause != nil && trial.Table[rep.Ending].Retry == trial.OnResume {
		wk.letGo(cause)
		wk.emit(Event{Kind: Dropped, Outcome: rep.Outcome, Why: d.why})
		return
	}
	wk.answer("retry", func(ctx context.Context) error { return wk.lease.Retry(ctx, d.after, nil) })
	wk.emit(Event{Kind: Retrying, Outcome: rep.Outcome, Why: d.why, After: d.after})
}

// commit makes the attempt the one that counts, unless another was first.
func (wk *work) commit(ctx context.Context, rep trial.Report, sealed bundle.Sealed, d decision) {
	c := bundle.Commit{
		TrialID: wk.row.TrialID, TaskID: wk.row.TaskID, TrialIndex: wk.row.TrialIndex,
		Epoch: wk.claim.Epoch, Attempt: wk.claim.Attempt, Nonce: wk.nonce, Worker: wk.w.Name,
		Plan: wk.ref, IndexSHA256: sealed.IndexSHA256,
		Outcome: rep.Outcome, Grade: rep.Grade, Metrics: rep.Metrics, At: time.Now().UTC(),
	}
	var winner bundle.Commit
	var won bool
	err := wk.w.again(ctx, wk.w.StoreRetry, func(ctx context.Context) (err error) {
		winner, won, err = bundle.WriteCommit(ctx, wk.w.Store, wk.keys, c)
		return err
	})
	if err != nil {
		// Nobody knows whether it is written. The next delivery will find out.
		wk.log.Error().Err(err).Msg("commit could not be written")
		wk.lease.Abandon()
		wk.emit(Event{Kind: Dropped, Outcome: rep.Outcome, Why: err.Error()})
		return
	}
	wk.record(ctx, rep, d, won)
	if won {
		wk.writeResult(ctx, rep)
	} else {
		wk.log.Warn().Int("committed_attempt", winner.Attempt).Msg("another attempt was committed first; this one is kept as superseded")
	}
	if d.dead {
		wk.answer("bury", func(ctx context.Context) error { return wk.lease.Bury(ctx, d.why) })
	} else {
		wk.answer("done", wk.lease.Done)
	}
	wk.emit(Event{Kind: Committed, Attempt: winner.Attempt, Outcome: winner.Outcome, Grade: winner.Grade,
		Latency: time.Duration(winner.Metrics.LatencyTotalS.Millis()) * time.Millisecond})
}

// upload seals the files and puts them below the attempt's number.
func (wk *work) upload(ctx context.Context, files *bundle.Writer) (bundle.Sealed, error) {
	if files == nil {
		return bundle.Sealed{}, nil
	}
	sealed, err := files.Seal(ctx)
	if err != nil {
		return sealed, err
	}
	prefix := wk.keys.AttemptFiles(wk.row.TaskID, wk.row.TrialIndex, wk.claim.Attempt)
	return sealed, wk.w.again(ctx, wk.w.StoreRetry, func(ctx context.Context) error {
		return bundle.Upload(ctx, wk.w.Store, prefix, sealed, wk.w.UploadParallel)
	})
}

// record writes how the attempt ended. A missing end reads as a crash, which costs
// nothing but a little truth, so a failure here is only logged.
func (wk *work) record(ctx context.Context, rep trial.Report, d decision, committed bool) {
	end := bundle.AttemptEnd{
		Attempt: wk.claim.Attempt, Epoch: wk.claim.Epoch, Outcome: rep.Outcome,
		Committed: committed, Superseded: d.commit && !committed, Charged: d.charged, Why: d.why, At: time.Now().UTC(),
	}
	err := wk.w.again(ctx, storeTimeout, func(ctx context.Context) error {
		return bundle.EndAttempt(ctx, wk.w.Store, wk.keys, wk.row.TrialID, end)
	})
	if err != nil {
		wk.log.Warn().Err(err).Msg("end of the attempt could not be recorded")
	}
}

func (wk *work) writeResult(ctx context.Context, rep trial.Report) {
	r := bundle.Result{
		TrialID: wk.row.TrialID, TaskID: wk.row.TaskID, TrialIndex: wk.row.TrialIndex,
		Epoch: wk.claim.Epoch, Attempt: wk.claim.Attempt, Attempts: len(wk.history) + 1,
		Outcome: rep.Outcome, Grade: rep.Grade,
		Path: wk.keys.AttemptFiles(wk.row.TaskID, wk.row.TrialIndex, wk.claim.Attempt),
	}
	err := wk.w.again(ctx, storeTimeout, func(ctx context.Context) error {
		return bundle.WriteResult(ctx, wk.w.Store, wk.keys, r)
	})
	if err != nil {
		wk.log.Warn().Err(err).Msg("result.json could not be written")
	}
}

// answerTimeout bounds an answer to the queue. When it can't be given, the next
// delivery finds the commit.
const answerTimeout = 30 * time.Second

func (wk *work) answer(what string, say func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(wk.ctx), answerTimeout)
	defer cancel()
	if err := say(ctx); err != nil {
		wk.log.Warn().Err(err).Str("answer", what).Msg("the queue did not take the answer")
		wk.lease.Abandon()
	}
}

// letGo answers a lease whose trial was stopped from outside.
func (wk *work) letGo(cause error) {
	if errors.Is(cause, trial.ErrHandOver) {
		wk.answer("hand over", func(ctx context.Context) error { return wk.lease.Retry(ctx, 0, nil) })
		return
	}
	wk.lease.Abandon() // lost or purged: there is nobody to tell
}
