// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
)

// record writes how the attempt ended. A missing end reads as a crash, but for this process
// and as long as it lives, see [deaths]; so a failure here is only logged.
func (wk *work) record(ctx context.Context, rep trial.Report, d decision, committed bool) {
	end := bundle.AttemptEnd{
		Attempt: wk.claim.Attempt, Epoch: wk.claim.Epoch, Outcome: rep.Outcome,
		Committed: committed, Superseded: d.commit && !committed, Charged: d.charged, Why: d.why, At: time.Now().UTC(),
	}
	end.LatencyS = bundle.NewSeconds(wk.took)
	if wk.earlier == nil { // else the cost is that of the attempt that is graded again
		end.CostUSD = rep.Metrics.CostUSD
	}
	err := wk.w.insist(ctx, storeTimeout, func(ctx context.Context) error {
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
