// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// work is one leased job on its way through the worker.
type work struct {
	w     *Worker
	lease queue.Lease
	nonce string
	run   *liveRun
	rec   *manifest.RunRecord
	keys  bundle.Keys
	ref   bundle.PlanRef
	row   bundle.PlanRow
	log   zerolog.Logger

	claim   bundle.Claim
	history []bundle.Attempt // before this one
	ctx     context.Context  // ends when the attempt is to stop
	cancel  context.CancelCauseFunc
	stop    chan struct{} // ends the heartbeat
	beating chan struct{} // closed when it has ended
}

// storeTimeout bounds a single look into the store before an attempt begins.
const storeTimeout = time.Minute

// handle runs one job. It returns when the slot is free; the rest goes on beside it.
func (w *Worker) handle(lease queue.Lease, nonce string) {
	job := lease.Job()
	wk := &work{
		w: w, lease: lease, nonce: nonce, keys: bundle.Keys{Run: job.Run},
		log:  w.Log.With().Str("run_id", job.Run).Str("trial_id", job.Trial).Int("epoch", job.Epoch).Logger(),
		stop: make(chan struct{}), beating: make(chan struct{}),
	}
	wk.ctx, wk.cancel = context.WithCancelCause(w.hardCtx)
	go func() {
		defer close(wk.beating)
		w.beat(lease, wk.log, wk.cancel, wk.stop)
	}()
	w.trials.Add(1)
	if !wk.begin() {
		wk.end()
		return
	}
	rep, files := wk.attempt()
	w.spool <- struct{}{} // waits while too much is on its way to the store
	go func() {
		defer func() { <-w.spool; wk.end() }()
		wk.finish(rep, files)
	}()
}

// end gives back what handle took.
func (wk *work) end() {
	close(wk.stop)
	<-wk.beating
	wk.cancel(nil)
	wk.w.trials.Done()
}

// begin finds out what the job is about and claims an attempt. It returns false when
// there is nothing to run; the lease has been answered then.
func (wk *work) begin() bool {
	ctx, cancel := context.WithTimeout(wk.ctx, storeTimeout)
	defer cancel()
	job := wk.lease.Job()
	found, err := bundle.FindCommit(ctx, wk.w.Store, wk.keys, job.Trial, job.Epoch)
	if err == nil && found != nil {
		wk.log.Debug().Msg("found committed")
		wk.answer("done", wk.lease.Done)
		wk.emit(Event{Kind: Found, TaskID: found.TaskID, TrialIndex: found.TrialIndex, Attempt: found.Attempt,
			Outcome: found.Outcome, Grade: found.Grade})
		return false
	}
	if err == nil {
		err = wk.look(ctx)
	}
	if err == nil {
		wk.claim, wk.history, err = bundle.ClaimAttempt(ctx, wk.w.Store, wk.keys, bundle.Claim{
			TrialID: job.Trial, TaskID: wk.row.TaskID, TrialIndex: wk.row.TrialIndex, Epoch: job.Epoch,
			Worker: wk.w.Name, Nonce: wk.nonce, Fence: uint64(wk.lease.Fence()), At: time.Now().UTC(),
		})
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

// look reads the run and the row that the job points at.
func (wk *work) look(ctx context.Context) error {
	job := wk.lease.Job()
	var err error
	if wk.ref, err = dispatch.ParseBody(job.Body); err != nil {
		return permanent{err}
	}
	wk.run = wk.w.runs.get(job.Run)
	if wk.rec, err = wk.run.record(ctx); err != nil {
		if _, ok := errors.AsType[*dispatch.UnknownRunError](err); ok {
			return permanent{err}
		}
		return err
	}
	if wk.row, err = wk.run.row(ctx, wk.ref); err != nil {
		return err
	}
	if wk.row.TrialID != job.Trial {
		return permanent{fmt.Errorf("plan row %d/%d is trial %s, the job says %s; the queue holds jobs of another store",
			wk.ref.Part, wk.ref.Row, wk.row.TrialID, job.Trial)}
	}
	return nil
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
	const after = 2 * time.Second
	wk.log.Warn().Err(err).Msg("attempt could not begin; put back")
	wk.answer("retry", func(ctx context.Context) error { return wk.lease.Retry(ctx, after, nil) })
	wk.emit(Event{Kind: Retrying, Why: err.Error(), After: after})
}

// attempt runs the trial and returns with the sandbox gone.
func (wk *work) attempt() (trial.Report, *bundle.Writer) {
	dir := filepath.Join(wk.w.spoolDir(), wk.row.TrialID+"."+strconv.Itoa(wk.claim.Attempt))
	files, err := bundle.NewWriter(dir)
	if err != nil {
		return lost(err), nil
	}
	cfg := trial.Config{
		RuntimeType: wk.rec.Run.Runtime.Type,
		Run:         wk.rec, Row: wk.row, Epoch: wk.claim.Epoch, Attempt: wk.claim.Attempt,
		StoreUUID: wk.w.StoreUUID, Worker: wk.w.Name, Version: wk.w.Version,
		Files: files, Log: wk.log,
		OnPhase: func(phase string) { wk.emit(Event{Kind: Phase, Phase: phase}) },
	}
	cfg.Early = wk.prepare(&cfg)
	return trial.Run(wk.ctx, cfg), files
}

// prepare fetches what the trial needs. A failure becomes the attempt's outcome.
func (wk *work) prepare(cfg *trial.Config) *trial.EarlyFailure {
	infra := func(err error) *trial.EarlyFailure {
		return &trial.EarlyFailure{Ending: trial.InfraFailed, Err: err}
	}
	var err error
	if cfg.Task, err = wk.run.task(wk.ctx, wk.row); err != nil {
		return infra(fmt.Errorf("task: %w", err))
	}
	if cfg.AgentFiles, cfg.AgentFilesName, err = wk.run.agentFiles(wk.ctx, wk.rec); err != nil {
		return infra(fmt.Errorf("agent files: %w", err))
	}
	secrets, missing := trial.SecretsFrom(wk.rec.Run.Agent.Secrets)
	if len(missing) > 0 {
		return infra(fmt.Errorf("secret %s is not set on worker %s; set it in the worker's environment", missing[0], wk.w.Name))
	}
	cfg.Secrets = secrets
	if cfg.Environment, err = wk.run.environment(wk.rec); err != nil {
		return &trial.EarlyFailure{Ending: trial.ProvisionFailed, Err: err}
	}
	return nil
}

// lost is the report of an attempt whose bundle could not even be begun.
func lost(err error) trial.Report {
	return trial.Report{
		Ending:  trial.InfraFailed,
		Outcome: trial.InfraFailed.Outcome("", trial.PhaseProvision, err.Error()),
	}
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
