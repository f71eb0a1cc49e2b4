// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/internal/flight"
	"github.com/tidemill/tidemill/runtime"
)

// Sweeper removes leftovers. Make one with [New]. Its methods may be called from several
// goroutines.
type Sweeper struct {
	Config

	mu     sync.Mutex
	totals Summary
}

// Item is one thing that there is, and what becomes of it.
type Item struct {
	Source   string
	Resource runtime.Resource
	Verdict  Verdict

	place Place
}

// Summary counts what sweeps did.
type Summary struct {
	Seen    int // things of whatever kind
	Removed int // those that went
	Pruned  int // what belongs to no sandbox
	Failed  int // failures, each logged
}

// New returns a sweeper.
func New(c Config) (*Sweeper, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Sweeper{Config: c}, nil
}

// Run sweeps from time to time until ctx ends.
func (s *Sweeper) Run(ctx context.Context) {
	for {
		s.Clock.Wait(ctx, s.Clock.Vary(s.Interval, s.Interval/5))
		if ctx.Err() != nil {
			return
		}
		s.pass(ctx, s.MinAge)
	}
}

// Begin is the sweep before any work. Where the caller is alone nothing is in the making,
// so that age says nothing there.
func (s *Sweeper) Begin(ctx context.Context) Summary { return s.pass(ctx, 0) }

// Totals counts what all sweeps so far did.
func (s *Sweeper) Totals() Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

// pass is one sweep. minAge is for where we are alone.
func (s *Sweeper) pass(ctx context.Context, minAge time.Duration) Summary {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Time, fmt.Errorf("the sweep took longer than %s", s.Time))
	defer cancel()
	begun := time.Now()
	items, errs := s.survey(ctx, minAge)
	sum := Summary{Seen: len(items), Failed: len(errs)}
	for _, err := range errs {
		s.Log.Warn().Err(err).Msg("sweep: not everything could be looked at")
	}
	for i, err := range s.Remove(ctx, items) {
		it := items[i]
		switch {
		case err != nil:
			sum.Failed++
			s.Log.Warn().Err(err).Str("runtime", it.Source).Str("name", it.Resource.Name).
				Msg("sweep: a leftover could not be removed; it is tried again next time")
		case it.Verdict.Goes:
			sum.Removed++
			s.Log.Info().Str("runtime", it.Source).Str("kind", it.Resource.Handle.Kind).Str("name", it.Resource.Name).
				Str("run_id", it.Resource.Labels.Run).Str("why", it.Verdict.Why).Msg("removed what an earlier process left")
		}
	}
	pruned, err := s.Prune(ctx, runtime.PruneOptions{})
	sum.Pruned = len(pruned)
	if err != nil {
		sum.Failed++
		s.Log.Warn().Err(err).Msg("sweep: not everything that nobody needs could be removed")
	}
	s.mu.Lock()
	s.totals.Seen += sum.Seen
	s.totals.Removed += sum.Removed
	s.totals.Pruned += sum.Pruned
	s.totals.Failed += sum.Failed
	s.mu.Unlock()
	level := s.Log.Debug()
	if sum.Removed+sum.Pruned+sum.Failed > 0 {
		level = s.Log.Info()
	}
	level.Int("seen", sum.Seen).Int("removed", sum.Removed).Int("pruned", sum.Pruned).Int("failed", sum.Failed).
		Dur("took", time.Since(begun)).Msg("swept")
	return sum
}

// Survey looks at everything and decides, and removes nothing. Sources that can't be
// listed are missing; an error for each comes beside the items.
func (s *Sweeper) Survey(ctx context.Context) ([]Item, []error) { return s.survey(ctx, s.MinAge) }

func (s *Sweeper) survey(ctx context.Context, aloneAge time.Duration) (items []Item, errs []error) {
	asked := asking{leases: s.Leases, known: map[string]holding{}}
	for _, src := range s.Sources {
		var list []runtime.Resource
		err := flight.Safely(func() (err error) {
			list, err = src.Place.List(ctx)
			return err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", src.Name, err))
		}
		for _, r := range list {
			f := Facts{Store: s.Store, Now: s.Clock.Now(), MinAge: max(0, s.MinAge), Alone: src.Alone}
			if src.Alone {
				f.MinAge = max(0, aloneAge)
			}
			v := Decide(r, f)
			if v.Ask {
				f.Lease = asked.lease(ctx, r.Labels)
				v = Decide(r, f)
			}
			items = append(items, Item{Source: src.Name, Resource: r, Verdict: v, place: src.Place})
		}
	}
	if asked.failed != nil {
		errs = append(errs, fmt.Errorf("who holds the leases: %w", asked.failed))
	}
	return items, errs
}

// Remove removes the items whose verdict is to go, each whatever becomes of the others. It
// returns an error for each item, nil where there was nothing to do or it is gone.
func (s *Sweeper) Remove(ctx context.Context, items []Item) []error {
	errs := make([]error, len(items))
	var g errgroup.Group
	g.SetLimit(s.Parallel)
	for i, it := range items {
		if !it.Verdict.Goes {
			continue
		}
		g.Go(func() error {
			if ctx.Err() != nil {
				errs[i] = context.Cause(ctx)
				return nil
			}
			errs[i] = flight.Safely(func() error { return it.place.Destroy(ctx, it.Resource.Handle) })
			return nil
		})
	}
	_ = g.Wait() // each has its own error
	return errs
}

// Prune lets the runtimes that can give back what nobody needs.
func (s *Sweeper) Prune(ctx context.Context, opts runtime.PruneOptions) ([]runtime.Pruned, error) {
	var all []runtime.Pruned
	var errs []error
	for _, src := range s.Sources {
		p, ok := src.Place.(runtime.Pruner)
		if !ok {
			continue
		}
		err := flight.Safely(func() error {
			pruned, err := p.Prune(ctx, opts)
			all = append(all, pruned...)
			return err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", src.Name, err))
		}
	}
	return all, errors.Join(errs...)
}
