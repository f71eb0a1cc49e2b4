// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/queue"
)

// surveySlack is by how much the clock of who submits a run may be behind ours.
const surveySlack = time.Minute

// mend puts runs into the queue that were in it a moment ago. Where that shows that the
// queue was lost, by one of them or by its being new, it looks for those too that were
// submitted and lost between two looks.
func (g *Governor) mend(ctx context.Context, open map[string]bool) (errs []error) {
	lost := g.beganAnew()
	for id, w := range g.runs {
		if open[id] {
			continue
		}
		again, err := g.putIn(ctx, id, w)
		if err != nil {
			errs = append(errs, fmt.Errorf("run %s, which was in the queue: %w", id, err))
		}
		lost = lost || again
	}
	if lost {
		errs = append(errs, g.survey(ctx, open)...)
	}
	return errs
}

// beganAnew reports that the queue is new and has settled: whoever submitted to it since has
// been here, and who did so before has lost what he submitted.
func (g *Governor) beganAnew() bool {
	q, ok := g.Queue.(queue.Settling)
	was := g.settling
	g.settling = ok && q.Settles() > 0
	return was && !g.settling
}

// survey puts the store's runs into the queue that aren't in it, of those that were
// submitted since this governor began: where it was to be submitted to isn't known of older
// ones, and somebody may have left them on purpose.
func (g *Governor) survey(ctx context.Context, open map[string]bool) (errs []error) {
	since := g.claimed.Add(-surveySlack)
	for id, err := range bundle.ListRuns(ctx, g.Store) {
		if err != nil {
			return append(errs, fmt.Errorf("look for lost runs: %w", err))
		}
		if open[id] || g.runs[id] != nil {
			continue
		}
		rec, err := dispatch.LoadRun(ctx, g.Store, id)
		if _, unknown := errors.AsType[*dispatch.UnknownRunError](err); unknown {
			continue // it is being submitted
		}
		if err == nil && rec.CreatedAt.Before(since) {
			continue
		}
		if err == nil {
			_, err = g.putIn(ctx, id, &watched{rec: &rec})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("run %s, which isn't in the queue: %w", id, err))
		}
	}
	return errs
}

// putIn puts a run into the queue, and reports whether it did. It is forgotten when it has
// nothing left to do.
func (g *Governor) putIn(ctx context.Context, id string, w *watched) (bool, error) {
	done, now, err := dispatch.LookAt(ctx, g.Store, id)
	if err != nil {
		return false, err
	}
	if done >= w.rec.Plan.Trials || now.Ended != nil {
		delete(g.runs, id)
		return false, nil
	}
	p, err := g.producer.Rebuild(ctx, *w.rec)
	if err != nil {
		return false, err
	}
	g.Log.Warn().Str("run_id", id).Int("enqueued", p.Enqueued).Int("committed", p.Committed).
		Msg("the queue had lost a run; it is in it again, from the store")
	return true, nil
}
