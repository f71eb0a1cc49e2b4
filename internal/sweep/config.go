// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/runtime"
)

// Place is where things are that may be leftovers. Every [runtime.Runtime] is one, and so
// is [Files].
type Place interface {
	List(ctx context.Context) ([]runtime.Resource, error)
	Destroy(ctx context.Context, h runtime.Handle) error
}

// Source is a place to sweep.
type Source struct {
	// Name for messages: the type of the runtime, or what files these are.
	Name  string
	Place Place
	// Alone is as in [Facts].
	Alone bool
}

// Leases tells who holds a trial's lease; a [queue.Inspector] does.
type Leases interface {
	Holder(ctx context.Context, run, trial string) (worker string, err error)
}

// Config configures a sweeper.
type Config struct {
	// Store is the uuid of the store whose things these are.
	Store   string
	Sources []Source
	// Leases is asked where more than one makes such things; nil is nobody.
	Leases Leases
	// MinAge is how old a thing must be to go; negative is any age. Defaults to 1 min.
	MinAge time.Duration
	// Interval between two sweeps; each is up to a fifth longer or shorter, so that a fleet
	// doesn't sweep as one. Defaults to 5 min.
	Interval time.Duration
	// Time is how long a sweep may take; what it has begun to remove by then is brought to
	// its end, which is bounded by the runtime. Defaults to 2 min.
	Time time.Duration
	// Parallel is how many things are removed at once. Defaults to 4.
	Parallel int
	Log      zerolog.Logger

	// Clock is for tests. Defaults to the real one.
	Clock Clock
}

// Clock tells the time and lets it pass.
type Clock interface {
	Now() time.Time
	// Wait returns when d has passed, or ctx has ended.
	Wait(ctx context.Context, d time.Duration)
	// Vary returns a time that is up to by longer or shorter.
	Vary(d, by time.Duration) time.Duration
}

// WithDefaults returns a completed copy.
func (c Config) WithDefaults() Config {
	c.MinAge = cmp.Or(c.MinAge, time.Minute)
	c.Interval = cmp.Or(c.Interval, 5*time.Minute)
	c.Time = cmp.Or(c.Time, 2*time.Minute)
	c.Parallel = cmp.Or(c.Parallel, 4)
	if c.Clock == nil {
		c.Clock = wallClock{}
	}
	return c
}

// Validate reports everything that is wrong with a completed configuration.
func (c Config) Validate() error {
	var errs []error
	if c.Store == "" {
		errs = append(errs, errors.New("sweep: the store's uuid is needed"))
	}
	for name, d := range map[string]time.Duration{"interval": c.Interval, "time": c.Time} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("sweep: %s %s: want more than 0", name, d))
		}
	}
	if c.Parallel < 1 {
		errs = append(errs, fmt.Errorf("sweep: parallel %d: want 1 or more", c.Parallel))
	}
	return errors.Join(errs...)
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) Wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (wallClock) Vary(d, by time.Duration) time.Duration { return d - by + rand.N(2*by+1) }
