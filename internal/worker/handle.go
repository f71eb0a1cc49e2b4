// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/flight"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// work is one leased job on its way through the worker.
type work struct {
	w     *Worker
	lease queue.Lease
	nonce string
	rec   *manifest.RunRecord
	keys  bundle.Keys
	ref   bundle.PlanRef
	row   bundle.PlanRow
	dir   string // of the attempt's bundle, in the spool
	note  *note  // where it belongs
	log   zerolog.Logger

	earlier *trial.Earlier // what is graded again; nil where an agent runs

	alone  bool           // nothing else runs here until its end is written
	leave  func()         // gives its place among the others back; nil without one
	killed []bundle.Claim // it is buried because of them
	packs  []func()       // what it holds of the pack cache

	claim   bundle.Claim
	took    time.Duration    // that the attempt held its slot, with all that was fetched for it
	history []bundle.Attempt // before this one
	ctx     context.Context  // ends when the attempt is to stop
	cancel  context.CancelCauseFunc

	stopBeat func()
	beatOnce sync.Once
}

// storeTimeout bounds a single look into the store before an attempt begins.
const storeTimeout = time.Minute

// handle runs one job. It returns when the slot is free; the rest goes on beside it. It
// reports whether an attempt was begun.
func (w *Worker) handle(lease queue.Lease, nonce string) bool {
	job := lease.Job()
	wk := &work{
		w: w, lease: lease, nonce: nonce, keys: bundle.Keys{Run: job.Run},
		log: w.Log.With().Str("run_id", job.Run).Str("trial_id", job.Trial).Int("epoch", job.Epoch).Logger(),
	}
	wk.ctx, wk.cancel = context.WithCancelCause(w.hardCtx)
	wk.startBeat()
	defer w.load.slotFree()
	begun := false
	wk.safely(func() { begun = wk.begin() })
	if !begun {
		wk.goneFromSlot()
		wk.end()
		return false
	}
	var rep trial.Report
	var files *bundle.Writer
	wk.safely(func() { rep, files = wk.attempt() })
	wk.goneFromSlot()
	if rep.Ending == "" {
		wk.end()
		return true
	}
	size := wk.size()
	w.room.enter(size) // waits while too much is on its way to the store
	wk.emit(Event{Kind: Phase, Phase: PhaseUpload})
	w.uploads.Go(func() {
		defer w.room.leave(size)
		defer wk.end()
		if !wk.safely(func() { wk.finish(rep, files) }) && files != nil {
			wk.keepUnsent(errPanicked)
		}
	})
	return true
}

// goneFromSlot gives back what only an attempt with a sandbox needs. Who is alone stays so
// until its end is written, or the next one could kill the worker under its upload.
func (wk *work) goneFromSlot() {
	if !wk.alone {
		wk.leaveCompany()
	}
	for _, release := range wk.packs {
		release()
	}
	wk.packs = nil
}

func (wk *work) leaveCompany() {
	if wk.leave != nil {
		wk.leave()
		wk.leave = nil
	}
}

// safely keeps a panic from taking other trials down. The job is left as a crash would
// leave it, and comes again. It reports whether all went well.
func (wk *work) safely(do func()) bool {
	err := flight.Safely(func() error { do(); return nil })
	if p, ok := errors.AsType[*flight.PanicError](err); ok {
		wk.log.Error().Err(p).Bytes("stack", p.Stack).Msg("worker panicked; the trial is left to the next delivery")
		wk.abandon()
	}
	return err == nil
}

// end gives back what handle took.
func (wk *work) end() {
	wk.endBeat()
	wk.w.vacate(wk.bundleName())
	wk.cancel(nil)
	wk.leaveCompany()
	wk.dropNote()
	wk.w.load.end()
}

// begin finds out what the job is about and claims an attempt. It returns false when
// there is nothing to run; the lease has been answered then.
func (wk *work) begin() bool {
	ctx, cancel := context.WithTimeout(wk.ctx, storeTimeout)
	defer cancel()
	if wk.w.diskIsLow() { // as it was not when this job was asked for
		wk.notNow("this worker has no disk left")
		return false
	}
	job := wk.lease.Job()
	found, err := bundle.FindCommit(ctx, wk.w.Store, wk.keys, job.Trial, job.Epoch)
	if err == nil && found != nil {
		wk.found(*found)
		return false
	}
	if err == nil {
		err = wk.look(ctx)
	}
	if err == nil && wk.w.Others {
		if why := wk.agentLacks(); why != "" {
			wk.refuse(why)
			wk.notNow("this worker " + why)
			return false
		}
	}
	var before []bundle.Attempt
	if err == nil {
		before, err = bundle.ListAttempts(ctx, wk.w.Store, wk.keys, job.Trial)
	}
	if err == nil {
		if !wk.join(before) {
			return false
		}
		err = wk.claimAfter(before)
	}
	if err != nil {
		wk.putBack(err)
		return false
	}
	wk.log = wk.log.With().Str("task_id", wk.row.TaskID).Int("attempt", wk.claim.Attempt).Logger()
	wk.log.Debug().Msg("attempt claimed")
	wk.emit(Event{Kind: Started})
	return true
}

// claimAfter claims an attempt. The time of the look is over where it had to wait for its
// place.
func (wk *work) claimAfter(before []bundle.Attempt) (err error) {
	ctx, cancel := context.WithTimeout(wk.ctx, storeTimeout)
	defer cancel()
	job := wk.lease.Job()
	wk.claim, wk.history, err = bundle.ClaimAfter(ctx, wk.w.Store, wk.keys, bundle.Claim{
		TrialID: job.Trial, TaskID: wk.row.TaskID, TrialIndex: wk.row.TrialIndex, Epoch: job.Epoch,
		Worker: wk.w.Name, Process: wk.w.process, Nonce: wk.nonce, Fence: uint64(wk.lease.Fence()), Alone: wk.alone, At: time.Now().UTC(),
	}, before)
	return err
}

// found answers for a trial that is done already.
func (wk *work) found(c bundle.Commit) {
	wk.log.Debug().Int("committed_attempt", c.Attempt).Msg("found committed")
	wk.answer("done", wk.lease.Done)
	wk.emit(Event{
		Kind: Found, TaskID: c.TaskID, TrialIndex: c.TrialIndex, Attempt: c.Attempt,
		Outcome: c.Outcome, Grade: c.Grade,
	})
}

// look reads the run and the row that the job points at.
func (wk *work) look(ctx context.Context) error {
	job := wk.lease.Job()
	var err error
	if wk.ref, err = dispatch.ParseBody(job.Body); err != nil {
		return permanent{err}
	}
	if wk.rec, err = wk.w.shared.record(ctx, job.Run); err != nil {
		if _, ok := errors.AsType[*dispatch.UnknownRunError](err); ok {
			return permanent{err}
		}
		return err
	}
	if wk.row, err = wk.w.shared.row(ctx, job.Run, wk.ref); err != nil {
		return err
	}
	if wk.row.TrialID != job.Trial {
		return permanent{fmt.Errorf("plan row %d/%d is trial %s, the job says %s; the queue holds jobs of another store",
			wk.ref.Part, wk.ref.Row, wk.row.TrialID, job.Trial)}
	}
	return wk.lookBack(ctx)
}

// permanent marks what no repetition mends.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// putBack answers a job for which no attempt could be claimed. It is not charged.
func (wk *work) putBack(err error) {
	if cause := context.Cause(wk.ctx); cause != nil {
		wk.letGo(cause)
		return
	}
	if _, ok := errors.AsType[permanent](err); ok {
		wk.log.Error().Err(err).Msg("job makes no sense; buried")
		wk.answer("bury", func(ctx context.Context) error { return wk.lease.Bury(ctx, err.Error()) })
		wk.emit(Event{Kind: Dropped, Why: err.Error()})
		return
	}
	after := putBackPause(wk.lease.Job().Release)
	wk.log.Warn().Err(err).Dur("after", after).Msg("attempt could not begin; put back")
	wk.answer("retry", func(ctx context.Context) error { return wk.lease.Retry(ctx, after, nil) })
	wk.emit(Event{Kind: Retrying, Why: err.Error(), After: after})
}

// putBackPause grows with the release number, which grows with each time.
func putBackPause(release int) time.Duration {
	return time.Second << min(max(release, 1), 6)
}

func (wk *work) emit(e Event) {
	job := wk.lease.Job()
	e.Run, e.TrialID = job.Run, job.Trial
	if e.TaskID == "" {
		e.TaskID, e.TrialIndex = wk.row.TaskID, wk.row.TrialIndex
	}
	if e.Attempt == 0 {
		e.Attempt = wk.claim.Attempt
	}
	wk.w.emit(e)
}
