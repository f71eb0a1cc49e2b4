// SPDX-License-Identifier: Apache-2.0

package workercmd

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/manifest"
)

// limits are when a worker ends, what it may take of its machine, and when it begins
// nothing new.
type limits struct {
	drain, grace, idle time.Duration
	wait               time.Duration
	trials             int
	poison             int
	spool              int
	spoolSize          size
	packs              size
	disk, memory       size
}

func (l *limits) register(f *pflag.FlagSet) {
	l.spoolSize, l.packs, l.disk, l.memory = 4<<30, 20<<30, 1<<30, 256<<20
	f.DurationVar(&l.drain, "drain-timeout", 30*time.Second, "how long running trials may go on after the first signal")
	f.DurationVar(&l.grace, "outage-grace", 10*time.Minute, "how long a trial goes on while the queue can't be reached; 0s stops it at once")
	f.DurationVar(&l.wait, "queue-wait", time.Minute, "how long to wait at the start while no NATS server answers or JetStream has no leader; 0s tries once")
	f.DurationVar(&l.idle, "idle-exit", 0, "end after so long without work; 0s is never")
	f.IntVar(&l.trials, "max-trials", 0, "end after so many attempts; 0 is no limit")
	f.IntVar(&l.poison, "poison-after", 3, "bury a trial with which so many workers died, all but the first two while it ran alone; 0 counts nothing")
	f.IntVar(&l.spool, "spool-count", 0, "how many bundles may wait for their upload (default twice the slots)")
	f.Var(&l.spoolSize, "spool-size", "how large those may be together; 0 is no bound")
	f.Var(&l.packs, "pack-cache-size", "how much of unpacked packs is kept, beside those in use; 0 is no bound")
	f.Var(&l.disk, "min-free-disk", "begin no trial with less free disk in the work directory; 0 doesn't look")
	f.Var(&l.memory, "min-free-memory", "begin no trial with less available memory; 0 doesn't look")
}

func (l *limits) check() error {
	for flag, d := range map[string]time.Duration{"drain-timeout": l.drain, "idle-exit": l.idle, "outage-grace": l.grace, "queue-wait": l.wait} {
		if d < 0 {
			return app.Usage(fmt.Errorf("--%s %s: want 0s or more", flag, d))
		}
	}
	for flag, n := range map[string]int{"max-trials": l.trials, "poison-after": l.poison, "spool-count": l.spool} {
		if n < 0 {
			return app.Usage(fmt.Errorf("--%s %d: want 0 or more", flag, n))
		}
	}
	return nil
}

func (l *limits) apply(c *worker.Config) {
	c.DrainTimeout, c.IdleExit = l.drain, l.idle
	if c.OutageGrace = l.grace; l.grace == 0 {
		c.OutageGrace = -1 // strict
	}
	c.MaxTrials, c.PoisonAfter = l.trials, l.poison
	c.Spool, c.SpoolBytes, c.PackCache = l.spool, int64(l.spoolSize), int64(l.packs)
	c.MinFreeDisk, c.MinFreeMemory = int64(l.disk), int64(l.memory)
}

// size is a flag that holds a number of bytes.
type size int64

var _ pflag.Value = (*size)(nil)

func (s *size) String() string {
	if *s == 0 {
		return "0"
	}
	return manifest.Size(*s).String()
}

func (s *size) Set(text string) error {
	n, err := manifest.ParseSize(text)
	if err == nil {
		*s = size(n)
	}
	return err
}

func (s *size) Type() string { return "size" }
