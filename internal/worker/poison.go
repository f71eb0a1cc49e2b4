// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
)

// An attempt that was claimed and has no end died with its worker. One such death makes a
// trial a suspect, and so it does those that ran beside it: from then on each of them runs
// alone, until its end is written. A trial is buried after so many deaths, if it died all
// but the first of them alone: what killed so many workers was nobody else.

// deaths returns the attempts of an epoch that have no end, and how many of them ran alone.
// The caller holds the trial's lease: none of them goes on as far as the queue knows.
func deaths(history []bundle.Attempt, epoch int) (all []bundle.Claim, alone int) {
	for _, a := range history {
		if a.Claim.Epoch != epoch || a.End != nil {
			continue
		}
		all = append(all, a.Claim)
		if a.Claim.Alone {
			alone++
		}
	}
	return all, alone
}

// join finds the trial its place among those that run here, given the attempts before. It
// returns false when it has none now, and has answered the lease then.
func (wk *work) join(history []bundle.Attempt) bool {
	most := wk.w.PoisonAfter
	if most <= 0 {
		return true
	}
	all, alone := deaths(history, wk.lease.Job().Epoch)
	switch {
	case len(all) >= most && alone >= max(most-1, 1):
		wk.killed = all // nothing of it will run
		return true
	case len(all) > 0:
		return wk.joinAlone(len(all))
	case !wk.w.company.enter():
		wk.notNow()
		return false
	}
	wk.leave = func() { wk.w.company.leave(false) }
	return true
}

// alonePatience is how long a suspect waits here for another that is alone. Its slot would
// be idle anyway, but other workers may have room.
const alonePatience = 10 * time.Second

func (wk *work) joinAlone(died int) bool {
	wk.log.Warn().Int("deaths", died).Msg("workers died with this trial; it runs alone")
	why := fmt.Sprintf("trial %s runs alone, since a worker died that ran it", wk.lease.Job().Trial)
	if !wk.w.company.enterAlone(wk.ctx, alonePatience, why) {
		if cause := context.Cause(wk.ctx); cause != nil {
			wk.letGo(cause)
			return false
		}
		// Put back it would come behind all that waits, and each time again. So the lease is
		// left to run out, after which the job comes before them.
		wk.abandon()
		wk.emit(Event{Kind: Retrying, Why: "this worker runs another trial alone", After: wk.lease.TTL()})
		return false
	}
	wk.alone = true
	wk.leave = func() { wk.w.company.leave(true) }
	return true
}

// notNowPause is how long a trial is left to other workers that could not run here beside
// another.
const notNowPause = 2 * time.Second

func (wk *work) notNow() {
	if cause := context.Cause(wk.ctx); cause != nil {
		wk.letGo(cause)
		return
	}
	after := jitter(notNowPause)
	wk.answer("retry", func(ctx context.Context) error { return wk.lease.Retry(ctx, after, nil) })
	wk.emit(Event{Kind: Retrying, Why: "this worker runs another trial alone", After: after})
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
