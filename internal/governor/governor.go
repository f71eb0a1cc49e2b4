// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// Queue is what a governor needs of a queue. One that is a [queue.Roster] too has workers
// to be counted, and other governors.
type Queue interface {
	producer.Queue
	queue.Inspector
}

// Config configures a governor.
type Config struct {
	Store bundle.Store
	Queue Queue
	// Name tells the governors of one queue apart; that of the worker beside it will do.
	Name string
	Log  zerolog.Logger
	// Pool, where it is set, takes the place of the pools that runs name, as in
	// [producer.Producer].
	Pool string
	// Every is the time between two looks. Defaults to 3 seconds.
	Every time.Duration
	// OnDecision is told of decisions that the governor took; may be nil.
	OnDecision func(run string, c bundle.Control)

	now func() time.Time
}

// Governor looks after the runs of a queue. Make one with [New] and call Run once.
type Governor struct {
	Config
	producer producer.Producer
	runs     map[string]*watched
	empty    map[string]*emptied
	claimed  time.Time // since when this governor works; zero while another does
	settling bool      // the queue was new at the last look
}

// watched is what is remembered of a run.
type watched struct {
	rec     *manifest.RunRecord
	breaker breaker
	ends    *Ends     // of a run with a budget; nil before it was looked at
	costly  time.Time // when its ends may be looked at again
}

// Often is the time between two looks where one process is all there is.
const Often = time.Second

// claimName is what only one governor of a queue has.
const claimName = "govern"

// New returns a governor.
func New(c Config) (*Governor, error) {
	if c.Store == nil || c.Queue == nil || c.Name == "" {
		return nil, errors.New("governor: a store, a queue and a name are needed")
	}
	c.Every = cmp.Or(c.Every, 3*time.Second)
	if c.now == nil {
		c.now = time.Now
	}
	g := &Governor{Config: c, runs: map[string]*watched{}, empty: map[string]*emptied{}}
	g.producer = producer.Producer{Store: c.Store, Queue: c.Queue, Log: c.Log, Pool: c.Pool}
	return g, nil
}

// Run looks after runs until ctx ends.
func (g *Governor) Run(ctx context.Context) {
	defer g.resign(ctx)
	tick := time.NewTicker(g.Every)
	defer tick.Stop()
	for {
		if err := g.Look(ctx); err != nil && ctx.Err() == nil {
			g.Log.Warn().Err(err).Msg("runs could not be looked after; trying again")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lead reports whether this governor is the one that works.
func (g *Governor) lead(ctx context.Context) (bool, error) {
	roster, ok := g.Queue.(queue.Roster)
	held := true
	if ok {
		var err error
		if held, err = roster.Claim(ctx, claimName, g.Name); err != nil {
			return false, err
		}
	}
	switch {
	case !held && !g.claimed.IsZero():
		g.claimed = time.Time{}
		clear(g.runs)
		clear(g.empty)
	case held && g.claimed.IsZero():
		g.claimed = g.now()
	}
	return held, nil
}

// resignTimeout bounds the word that this governor works no more.
const resignTimeout = 5 * time.Second

func (g *Governor) resign(ctx context.Context) {
	if g.claimed.IsZero() {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := g.closeAll(ctx); err != nil {
		g.Log.Debug().Err(err).Msg("runs that are complete could not be taken out of the queue")
	}
	roster, ok := g.Queue.(queue.Roster)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, resignTimeout)
	defer cancel()
	if err := roster.Unclaim(ctx, claimName, g.Name); err != nil {
		g.Log.Debug().Err(err).Msg("claim could not be given back")
	}
}
