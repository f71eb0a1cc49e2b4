// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"cmp"
	"context"
	"time"

	"github.com/tidemill/tidemill/internal/dispatch"
)

// maxCloseWait is the longest time between two looks whether a run that has nothing in the
// queue is complete. Each look lists its commits.
const maxCloseWait = 5 * time.Minute

// emptied is what is remembered of a run that has nothing in the queue and was not closed.
type emptied struct {
	next time.Time // when it is looked at again
	wait time.Duration
}

// close takes a run out of the queue when it is complete or was ended. A retry, a resume
// or a submission opens it again. One that does so now is not disturbed: it writes its
// decision before it opens the run, so either the store tells of it or the queue does.
func (g *Governor) close(ctx context.Context, run string) error {
	e := g.empty[run]
	if e != nil && g.now().Before(e.next) {
		return nil
	}
	closed, err := g.Queue.CloseRun(ctx, run, func(ctx context.Context) (bool, error) { return g.settled(ctx, run) })
	if closed {
		delete(g.empty, run)
		delete(g.runs, run)
		g.Log.Info().Str("run_id", run).Msg("nothing is left to do of a run; it left the queue")
		return nil
	}
	if e == nil {
		e = &emptied{}
		g.empty[run] = e
	}
	e.wait = min(cmp.Or(2*e.wait, g.Every), maxCloseWait)
	e.next = g.now().Add(e.wait)
	return err
}

// settled reports whether nothing is left to do of a run, by the store.
func (g *Governor) settled(ctx context.Context, run string) (bool, error) {
	w, err := g.watch(ctx, run)
	if err != nil || w == nil {
		return false, err
	}
	done, now, err := dispatch.LookAt(ctx, g.Store, run)
	return err == nil && (done >= w.rec.Plan.Trials || now.Ended != nil), err
}

// lastLook bounds the look with which a governor ends.
const lastLook = 5 * time.Second

// closeAll closes what is complete before this governor ends: with workers that come and
// go with the work, nobody may be there later.
func (g *Governor) closeAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lastLook)
	defer cancel()
	runs, err := g.Queue.ListRuns(ctx)
	if err != nil {
		return err
	}
	for _, r := range runs {
		st, err := g.Queue.Stats(ctx, r.ID)
		if err != nil || st.Live() > 0 {
			continue
		}
		delete(g.empty, r.ID)
		if err := g.close(ctx, r.ID); err != nil {
			return err
		}
	}
	return nil
}
