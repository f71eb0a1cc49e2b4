// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/internal/sweep"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker"
	"github.com/tidemill/tidemill/runtime/scripted"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

// Alone reports whether only the owner of a data directory makes sandboxes of a type for
// its store, so that what has no living maker is a leftover at once. shared says that
// other processes work for the same store, as on a fleet.
func Alone(kind string, shared bool) bool {
	switch kind {
	case subprocess.Type, scripted.Type: // in the directory, and in this process
		return true
	case docker.Type: // several workers may use one engine
		return !shared
	}
	return false // somebody else's machines
}

// Sources are the runtimes as places to sweep, in the order of their names.
func Sources(rts map[string]runtime.Runtime, alone func(kind string) bool) []sweep.Source {
	var sources []sweep.Source
	for _, kind := range slices.Sorted(maps.Keys(rts)) {
		sources = append(sources, sweep.Source{Name: kind, Place: rts[kind], Alone: alone(kind)})
	}
	return sources
}

// Sweep removes what earlier processes left of a store's sandboxes, for a caller who holds
// the lock of a data directory and has begun nothing. What can't be removed is logged, and
// left to the next one.
func Sweep(ctx context.Context, rts map[string]runtime.Runtime, storeUUID string, log zerolog.Logger) (sweep.Summary, error) {
	s, err := sweep.New(sweep.Config{
		Store: storeUUID, Log: log,
		Sources: Sources(rts, func(kind string) bool { return Alone(kind, false) }),
	})
	if err != nil {
		return sweep.Summary{}, err
	}
	return s.Begin(ctx), nil
}

// SweepFlags say when a worker sweeps.
type SweepFlags struct{ interval time.Duration }

// Register adds them to a command.
func (f *SweepFlags) Register(flags *pflag.FlagSet) {
	flags.DurationVar(&f.interval, "sweep-interval", 5*time.Minute, "how often what crashes left is looked for and removed; 0s is only at the start")
}

// Check refuses what makes no sense.
func (f *SweepFlags) Check() error {
	if f.interval != 0 && f.interval < time.Second {
		return app.Usage(fmt.Errorf("--sweep-interval %s: want 0s, or 1s or more", f.interval))
	}
	return nil
}

// Spool is what a worker has on its way to the store.
type Spool interface {
	SpoolDir() string
	InSpool(name string) bool
}

// Start sweeps once, and returns what sweeps from time to time until its context ends.
// c has no sources of files yet; spool becomes one. The worker has begun nothing.
func (f *SweepFlags) Start(ctx context.Context, c sweep.Config, spool Spool) (run func(context.Context), err error) {
	c.Sources = append(slices.Clone(c.Sources), sweep.Source{
		Name: "spool", Alone: true,
		Place: sweep.Files{Kind: "bundle", Dir: spool.SpoolDir(), Store: c.Store, InUse: spool.InSpool},
	})
	c.Interval = f.interval
	s, err := sweep.New(c)
	if err != nil {
		return nil, err
	}
	s.Begin(ctx)
	if f.interval == 0 {
		return func(context.Context) {}, nil
	}
	return s.Run, nil
}
