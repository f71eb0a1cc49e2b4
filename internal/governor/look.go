// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/queue"
)

// Look looks after the runs once. Trouble with one doesn't keep it from the others.
func (g *Governor) Look(ctx context.Context) error {
	lead, err := g.lead(ctx)
	if err != nil || !lead {
		return err
	}
	runs, err := g.Queue.ListRuns(ctx)
	if err != nil {
		return err
	}
	var workers []queue.Presence
	if roster, ok := g.Queue.(queue.Roster); ok {
		if workers, err = roster.Workers(ctx); err != nil {
			return err
		}
	}
	var errs []error
	open := map[string]bool{}
	for _, r := range runs {
		open[r.ID] = true
		if err := g.run(ctx, r, workers); err != nil {
			errs = append(errs, fmt.Errorf("run %s: %w", r.ID, err))
		}
	}
	return errors.Join(append(errs, g.mend(ctx, open)...)...)
}

// run looks after a run that is open in the queue.
func (g *Governor) run(ctx context.Context, r queue.Run, workers []queue.Presence) error {
	st, err := g.Queue.Stats(ctx, r.ID)
	if errors.Is(err, queue.ErrUnknownRun) || err == nil && st.Live() == 0 {
		return g.close(ctx, r.ID) // done, half closed, or nothing was enqueued yet
	}
	if err != nil {
		return err
	}
	delete(g.empty, r.ID)
	w, err := g.watch(ctx, r.ID)
	if err != nil || w == nil {
		return err
	}
	now, err := dispatch.Control(ctx, g.Store, r.ID)
	if err != nil {
		return err
	}
	if err := g.settle(ctx, w, r, now, st); err != nil {
		return err
	}
	b := settings(w.rec.Run.Limits.Breaker)
	w.breaker.take(r.ID, workers, g.claimed, g.now(), b.Window.D())
	if now.Held() {
		w.breaker.rest()
	}
	return g.limit(ctx, w, now)
}

// watch returns what is remembered of a run; nil when it isn't of this store.
func (g *Governor) watch(ctx context.Context, run string) (*watched, error) {
	if w := g.runs[run]; w != nil {
		return w, nil
	}
	rec, err := dispatch.LoadRun(ctx, g.Store, run)
	if _, unknown := errors.AsType[*dispatch.UnknownRunError](err); unknown {
		return nil, nil // workers say so of each job
	}
	if err != nil {
		return nil, err
	}
	w := &watched{rec: &rec}
	g.runs[run] = w
	return w, nil
}

// settle tells the queue what it doesn't know of the decisions.
func (g *Governor) settle(ctx context.Context, w *watched, r queue.Run, now bundle.ControlState, st queue.Stats) error {
	want, err := dispatch.QueueRun(*w.rec)
	if err != nil {
		return err
	}
	want = dispatch.Steer(want, now)
	same := r.Paused == want.Paused && r.Priority == want.Priority && r.Limits == want.Limits
	if same && (now.Ended == nil || st.Live() == 0) {
		return nil
	}
	if _, err := g.producer.Tell(ctx, *w.rec, now); err != nil {
		return err
	}
	g.Log.Info().Str("run_id", r.ID).Int("rev", now.Rev).Msg("told the queue what was decided about a run")
	return nil
}

// limit decides what the limits of a run ask for.
func (g *Governor) limit(ctx context.Context, w *watched, now bundle.ControlState) error {
	if now.Ended != nil {
		return nil
	}
	if end := dispatch.Deadline(w.rec, now); !end.IsZero() && !g.now().Before(end) {
		return g.give(ctx, w, producer.Order{
			Kind: bundle.ControlStop, By: bundle.ReasonDeadline, Reason: bundle.ReasonDeadline,
			Detail: "the run's deadline was " + end.UTC().Format(time.DateTime) + " UTC",
		})
	}
	if now.Paused != nil {
		return nil
	}
	if why := w.breaker.trips(settings(w.rec.Run.Limits.Breaker)); why != "" {
		w.breaker.rest()
		return g.give(ctx, w, producer.Order{
			Kind: bundle.ControlPause, By: bundle.PauseBreaker, Reason: bundle.PauseBreaker, Detail: why,
		})
	}
	return g.budget(ctx, w, now)
}

// costShare: adding up what a run has spent takes at most one part in so many of the time.
const costShare = 5

// budget pauses a run that has spent what it may.
func (g *Governor) budget(ctx context.Context, w *watched, now bundle.ControlState) error {
	limit := dispatch.Budget(w.rec, now)
	if limit <= 0 || g.now().Before(w.costly) {
		return nil
	}
	if w.ends == nil {
		w.ends = NewEnds(g.Store, w.rec.RunID)
	}
	began := time.Now()
	spent, err := w.ends.Look(ctx, nil)
	w.costly = g.now().Add(costShare * time.Since(began))
	if err != nil || spent.CostUSD < limit {
		return err
	}
	return g.give(ctx, w, producer.Order{
		Kind: bundle.ControlPause, By: bundle.ReasonBudget, Reason: bundle.ReasonBudget,
		Detail: fmt.Sprintf("agents have spent %.2f USD of %.2f USD", spent.CostUSD, limit),
	})
}

// give carries an order out, and says so.
func (g *Governor) give(ctx context.Context, w *watched, o producer.Order) error {
	o.Run = w.rec.RunID
	a, err := g.producer.Give(ctx, *w.rec, o)
	if _, refused := errors.AsType[*producer.RefusedError](err); refused {
		return nil // somebody ended it, or the last trial is done
	}
	if untold, ok := errors.AsType[*producer.UntoldError](err); ok {
		a = untold.Answer // it holds all the same, and the next look tells the queue
	}
	if a == nil || !a.Changed {
		return err
	}
	g.Log.Warn().Str("run_id", o.Run).Str("kind", o.Kind).Str("reason", o.Reason).Int("rev", a.Rev).Msg(o.Detail)
	if g.OnDecision != nil {
		g.OnDecision(o.Run, bundle.Control{Rev: a.Rev, Kind: o.Kind, By: o.By, At: g.now(), Args: map[string]any{
			bundle.ArgReason: o.Reason, bundle.ArgDetail: o.Detail,
		}})
	}
	return err
}
