// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/watermark"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/runtime"
)

// Config configures a worker.
type Config struct {
	// Name is random per process: a reused one hides what an earlier process left.
	// Defaults to <host>-<8 hex>.
	Name string
	// Pool whose runs it serves. Defaults to default.
	Pool string
	// Slots is how many trials run at once. Defaults to 1.
	Slots int
	// Spool is how many finished trials may wait for their upload at once. Defaults to
	// twice the slots.
	Spool int
	// SpoolBytes is how large their bundles may be together; a single one may be larger. A
	// trial whose bundle finds no room keeps its slot until it does. Defaults to 0: no bound.
	SpoolBytes int64
	// PackCache is how many bytes of unpacked packs are kept, beside those in use. Defaults
	// to 0: no bound.
	PackCache int64
	// UploadParallel is how many files of a bundle are put at once. Defaults to 4.
	UploadParallel int

	Store     bundle.Store
	StoreUUID string
	Queue     queue.Consumer
	// Runtimes by type: what it can serve.
	Runtimes map[string]runtime.Runtime
	// Offers are needs beyond the runtimes, such as gpu.
	Offers []string
	// Dir holds the pack cache and the spool. Two workers must not share one.
	Dir     string
	Version string
	Log     zerolog.Logger

	// DrainTimeout is how long running trials may go on after Run's context ended.
	// Defaults to 0: they are handed over at once.
	DrainTimeout time.Duration
	// IdleExit ends Run when there was nothing to do for so long. Defaults to 0: never.
	IdleExit time.Duration
	// MaxTrials ends Run when so many attempts were begun and have come to their end.
	// Defaults to 0: no limit.
	MaxTrials int
	// PoisonAfter is how many workers may die with a trial, all but the first two while it ran
	// there alone, before it is buried. Where it is set, a trial runs alone from its second
	// death on. Defaults to 0: deaths are not counted.
	PoisonAfter int
	// Others says that other workers serve the queue too: a trial whose secrets this one
	// lacks is left to them, uncharged. Defaults to false: it fails.
	Others bool
	// MinFreeDisk and MinFreeMemory are in bytes. With less of either no trial is begun,
	// until there is a quarter more. Default to 0: not looked at.
	MinFreeDisk, MinFreeMemory int64
	// FreeDisk and FreeMemory tell what there is. Default to the disk of Dir, and to what
	// the machine and the process's control group leave.
	FreeDisk, FreeMemory func() (int64, error)
	// OutageGrace is how long a trial goes on while the queue is unreachable; negative
	// is not at all. Defaults to 10 minutes.
	OutageGrace time.Duration
	// StoreRetry is how long an upload or commit is tried again while the store is
	// unavailable; a tenth of it while the store refuses it. Defaults to 5 minutes.
	StoreRetry time.Duration
	// Keep leaves the sandbox of every attempt to people for so long, where its runtime
	// can; see [trial.Config]. Defaults to 0: none is kept.
	Keep time.Duration
	// OnEvent is told what happens, in order per trial and from many goroutines; may be
	// nil. It must not block.
	OnEvent func(Event)
}

// WithDefaults returns a completed copy.
func (c Config) WithDefaults() Config {
	if c.Name == "" {
		c.Name = randomName()
	}
	c.Pool = cmp.Or(c.Pool, queue.DefaultPool)
	c.Slots = cmp.Or(c.Slots, 1)
	c.Spool = cmp.Or(c.Spool, 2*c.Slots)
	c.UploadParallel = cmp.Or(c.UploadParallel, 4)
	c.OutageGrace = cmp.Or(c.OutageGrace, 10*time.Minute)
	c.StoreRetry = cmp.Or(c.StoreRetry, 5*time.Minute)
	if c.FreeDisk == nil {
		c.FreeDisk = func() (int64, error) { return watermark.Disk(c.Dir) }
	}
	if c.FreeMemory == nil {
		c.FreeMemory = watermark.Memory
	}
	return c
}

// Validate reports every field that is wrong.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("worker: "+format, args...)) }
	if c.Slots < 1 {
		bad("slots %d: want 1 or more", c.Slots)
	}
	if c.Spool < 1 {
		bad("spool %d: want 1 or more", c.Spool)
	}
	for name, n := range map[string]int64{
		"spool bytes": c.SpoolBytes, "pack cache": c.PackCache, "idle exit": int64(c.IdleExit), "max trials": int64(c.MaxTrials),
		"poison after": int64(c.PoisonAfter), "min free disk": c.MinFreeDisk, "min free memory": c.MinFreeMemory,
	} {
		if n < 0 {
			bad("%s %d: want 0 or more", name, n)
		}
	}
	if c.Keep < 0 || c.Keep > keepAtMost {
		bad("keep %s: want 0 to %s", c.Keep, keepAtMost)
	}
	if c.Store == nil || c.Queue == nil {
		bad("a store and a queue are needed")
	}
	if c.StoreUUID == "" {
		bad("the store's uuid is needed")
	}
	if len(c.Runtimes) == 0 {
		bad("no runtimes; it could serve nothing")
	}
	if c.Dir == "" {
		bad("a directory is needed")
	}
	return errors.Join(errs...)
}

// offers are the needs that the worker can serve.
func (c Config) offers() []string {
	offers := slices.Clone(c.Offers)
	for kind := range c.Runtimes {
		offers = append(offers, kind)
	}
	slices.Sort(offers)
	return slices.Compact(offers)
}

func randomName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return host + "-" + hex.EncodeToString(b[:])
}
