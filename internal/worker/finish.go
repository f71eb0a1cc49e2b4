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
	if wk.handsOver(rep) {
		wk.handOver(ctx, rep, files)
		return
	}
	sealed, err := wk.store(ctx, files)
	if err != nil {
		rep = lost(fmt.Errorf("bundle could not be stored: %w", err))
	}
	d := wk.decide(rep, err == nil && files != nil)
	if d.commit {
		wk.commit(ctx, rep, sealed, d)
		return
	}
	wk.retry(ctx, rep, d)
}

// retry ends the attempt, and leaves the trial to another one.
func (wk *work) retry(ctx context.Context, rep trial.Report, d decision) {
	wk.record(ctx, rep, d, false)
	if cause := context.Cause(wk.ctx); cause != nil {
		wk.letGo(cause)
		wk.emit(Event{Kind: Dropped, Outcome: rep.Outcome, Why: d.why})
		return
	}
	wk.answer("retry", func(ctx context.Context) error { return wk.lease.Retry(ctx, d.after, nil) })
	wk.emit(Event{Kind: Retrying, Outcome: rep.Outcome, Why: d.why, After: d.after, Capacity: rep.Capacity})
}

// handsOver reports whether the attempt was stopped for another worker to take its trial.
func (wk *work) handsOver(rep trial.Report) bool {
	return trial.Table[rep.Ending].Retry == trial.OnResume && errors.Is(context.Cause(wk.ctx), trial.ErrHandOver)
}

// handOver lets another worker have the trial first, and stores what there is of this
// attempt then. The end comes before that, or the attempt would look like one that died.
func (wk *work) handOver(ctx context.Context, rep trial.Report, files *bundle.Writer) {
	d := wk.decide(rep, true)
	wk.record(ctx, rep, d, false)
	wk.letGo(context.Cause(wk.ctx))
	wk.emit(Event{Kind: Dropped, Outcome: rep.Outcome, Why: d.why})
	_, _ = wk.store(ctx, files) // it says what went wrong, and keeps the bundle then
}

// store puts the bundle into the store and clears it from the spool. One that could not be
// stored is kept beside it: it is the only copy.
func (wk *work) store(ctx context.Context, files *bundle.Writer) (bundle.Sealed, error) {
	if files == nil {
		return bundle.Sealed{}, nil
	}
	sealed, err := wk.upload(ctx, files)
	if err != nil {
		wk.log.Error().Err(err).Msg("bundle could not be stored")
		wk.w.foundNoRoom(err)
		wk.keepUnsent(err)
		return sealed, err
	}
	if err := files.Remove(); err != nil {
		wk.log.Warn().Err(err).Msg("spool could not be cleared")
	}
	wk.dropNote()
	return sealed, nil
}

// commit makes the attempt the one that counts, unless another was first.
func (wk *work) commit(ctx context.Context, rep trial.Report, sealed bundle.Sealed, d decision) {
	c := bundle.Commit{
		TrialID: wk.row.TrialID, TaskID: wk.row.TaskID, TrialIndex: wk.row.TrialIndex,
		Epoch: wk.claim.Epoch, Attempt: wk.claim.Attempt, Nonce: wk.nonce, Worker: wk.w.Name,
		Plan: wk.ref, IndexSHA256: sealed.IndexSHA256,
		Outcome: rep.Outcome, Grade: rep.Grade, Metrics: rep.Metrics, At: time.Now().UTC(),
	}
	if wk.earlier != nil {
		c.Regraded = wk.earlier.Regraded()
	}
	var winner bundle.Commit
	var won bool
	err := wk.w.insist(ctx, wk.w.StoreRetry, func(ctx context.Context) (err error) {
		winner, won, err = bundle.WriteCommit(ctx, wk.w.Store, wk.keys, c)
		return err
	})
	if err != nil {
		// Nobody knows whether it is written: the next delivery will find out. An attempt
		// without an end would look like one whose worker died.
		wk.log.Error().Err(err).Msg("commit could not be written")
		rep = lost(fmt.Errorf("commit could not be written: %w", err))
		wk.retry(ctx, rep, wk.decide(rep, false))
		return
	}
	wk.record(ctx, rep, d, won)
	if !won {
		wk.log.Warn().Int("committed_attempt", winner.Attempt).Msg("another attempt was committed first; this one is kept as superseded")
		wk.found(winner)
		return
	}
	wk.writeResult(ctx, rep)
	if d.dead {
		wk.answer("bury", func(ctx context.Context) error { return wk.lease.Bury(ctx, d.why) })
	} else {
		wk.answer("done", wk.lease.Done)
	}
	wk.emit(Event{
		Kind: Committed, Outcome: rep.Outcome, Grade: rep.Grade,
		Latency: time.Duration(rep.Metrics.LatencyTotalS.Millis()) * time.Millisecond,
	})
}

// upload seals the files and puts them below the attempt's number.
func (wk *work) upload(ctx context.Context, files *bundle.Writer) (bundle.Sealed, error) {
	sealed, err := files.Seal(ctx)
	if err != nil {
		return sealed, err
	}
	prefix := wk.keys.AttemptFiles(wk.row.TaskID, wk.row.TrialIndex, wk.claim.Attempt)
	return sealed, wk.w.insist(ctx, wk.w.StoreRetry, func(ctx context.Context) error {
		return bundle.Upload(ctx, wk.w.Store, prefix, sealed, wk.w.UploadParallel)
	})
}
