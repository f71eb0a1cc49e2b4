// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
)

// An attempt that was claimed and has no end died with its worker. That says little the
// first time: most workers that die are killed by something else than their trials, and all
// that ran there died with them. So what died once runs again at once, beside others. From
// the second death on a trial is a suspect and runs alone, until its end is written, so that
// nobody beside it is blamed. It is buried after so many deaths, if it died alone in all
// those in which it was a suspect.

// suspectFrom is the number of deaths from which on a trial runs alone, of those that bury
// it: two, but the last one is always alone.
func suspectFrom(most int) int { return max(1, min(2, most-1)) }

// guilty reports whether so many deaths, some of them alone, bury a trial.
func guilty(died, alone, most int) bool {
	return died >= most && alone >= max(1, most-suspectFrom(most))
}

// deaths returns the attempts of an epoch with which a worker may have died, and how many of
// them ran alone: those that have no end, the last of each process. A process that claimed
// again outlived what it had before, and this one lives; their ends could not be written.
// The caller holds the trial's lease: none of them goes on as far as the queue knows.
func deaths(history []bundle.Attempt, epoch int, process string) (all []bundle.Claim, alone int) {
	later := map[string]bool{process: true}
	for _, a := range slices.Backward(history) {
		outlived := a.Claim.Process != "" && later[a.Claim.Process]
		later[a.Claim.Process] = true
		if a.Claim.Epoch != epoch || a.End != nil || outlived {
			continue
		}
		all = append(all, a.Claim)
		if a.Claim.Alone {
			alone++
		}
	}
	slices.Reverse(all)
	return all, alone
}

// join finds the trial its place among those that run here, given the attempts before. It
// returns false when it has none now, and has answered the lease then.
func (wk *work) join(history []bundle.Attempt) bool {
	most := wk.w.PoisonAfter
	if most <= 0 {
		return true
	}
	all, alone := deaths(history, wk.lease.Job().Epoch, wk.w.process)
	switch {
	case guilty(len(all), alone, most):
		wk.killed = all // nothing of it will run
		return true
	case len(all) >= suspectFrom(most):
		return wk.joinAlone(len(all))
	case !wk.w.company.enter():
		wk.notNow("this worker runs another trial alone")
		return false
	}
	wk.leave = func() { wk.w.company.leave(false) }
	return true
}

func (wk *work) joinAlone(died int) bool {
	wk.log.Warn().Int("deaths", died).Msg("workers died with this trial; it runs alone")
	why := fmt.Sprintf("trial %s runs alone, since %d workers died that ran it", wk.lease.Job().Trial, died)
	if !wk.w.company.enterAlone(wk.ctx, why) {
		wk.notNow("this worker runs another trial alone")
		return false
	}
	wk.alone = true
	wk.leave = func() { wk.w.company.leave(true) }
	return true
}

// notNow leaves a trial to other workers that can't run here now. It keeps its place, and
// this worker asks for nothing like it for a while: the gate is held, or its run is refused.
func (wk *work) notNow(why string) {
	if cause := context.Cause(wk.ctx); cause != nil {
		wk.letGo(cause)
		return
	}
	wk.answer("hand back", wk.lease.HandBack)
	wk.emit(Event{Kind: Retrying, Why: why})
}

// poisoned is what becomes of an attempt whose trial is buried, nil for others.
func (wk *work) poisoned() *trial.EarlyFailure {
	if wk.killed == nil {
		return nil
	}
	var where []string
	for _, c := range wk.killed {
		how := ""
		if c.Alone {
			how = ", alone"
		}
		where = append(where, fmt.Sprintf("attempt %d on %s%s", c.Attempt, c.Worker, how))
	}
	return &trial.EarlyFailure{Ending: trial.Poisoned, Err: fmt.Errorf(
		"%d workers died that ran it: %s", len(wk.killed), strings.Join(where, "; "))}
}
