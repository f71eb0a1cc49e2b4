// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemill/tidemill/internal/health"
	"github.com/tidemill/tidemill/internal/placement"
	"github.com/tidemill/tidemill/internal/trial"
)

// Worker runs trials. Make one with [New] and call Run once.
type Worker struct {
	Config
	process  string // tells this one from all others
	shared   *shared
	presence *presence

	gate     *gate             // whether more work may be taken
	quota    *quota            // how much
	load     *load             // what there is
	company  *company          // who has a sandbox
	refusals *refusals         // of runs that it can't serve
	levels   []*level          // of what there has to be enough
	spares   *placement.Spares // files for bundles
	notes    *notes
	full     *fullDisk       // whether programs had room to write
	room     *room           // for bundles between teardown and the end of their upload
	dog      health.Watchdog // of its goroutines
	draining atomic.Bool

	uploads sync.WaitGroup // trials that left their slot
	hardCtx context.Context
	hard    context.CancelCauseFunc // ends every running trial
	stopped chan struct{}           // closed when Run returns

	liveMu sync.Mutex
	live   map[string]*Attempt // those that run, by trial
	spools map[string]bool     // names of bundles that are in the spool for an attempt that goes on
}

// New returns a worker.
func New(c Config) (*Worker, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	w := &Worker{
		Config: c, process: rand.Text(), stopped: make(chan struct{}), live: map[string]*Attempt{}, spools: map[string]bool{}, presence: newPresence(),
		gate: newGate(), quota: newQuota(c.MaxTrials), load: newLoad(), room: newRoom(c.Spool, c.SpoolBytes),
		refusals: newRefusals(),
	}
	w.company, w.full, w.levels = newCompany(w.gate), newFullDisk(c.Dir, c.MinFreeDisk), newLevels(c)
	// What a crash left in the spool was never committed; its attempts will be repeated.
	if err := os.RemoveAll(w.spoolDir()); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if err := os.MkdirAll(w.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	placement.Spread(w.Dir) // packs stay, bundles don't
	for _, dir := range []string{w.spoolDir(), w.unsentDir()} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("worker: %w", err)
		}
	}
	var err error
	if w.spares, err = placement.NewSpares(filepath.Join(w.Dir, "spares"), maxSpares); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if w.notes, err = newNotes(filepath.Join(w.Dir, "notes")); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	w.hardCtx, w.hard = context.WithCancelCause(context.Background())
	if w.shared, err = newShared(w); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	return w, nil
}

// maxSpares is some more than the files of 64 bundles.
const maxSpares = 1024

func (w *Worker) spoolDir() string { return filepath.Join(w.Dir, "spool") }

// unsentDir has the bundles that the store would not take, until it takes them.
func (w *Worker) unsentDir() string { return filepath.Join(w.Dir, "unsent") }

// Run serves until ctx ends, until there was nothing to do for IdleExit, or until MaxTrials
// have come to their end. When ctx ended it takes no more, lets what runs go on for
// DrainTimeout, and hands the rest over. It returns when nothing of it runs any more; its
// error is about what it could not give back.
func (w *Worker) Run(ctx context.Context) error {
	defer close(w.stopped)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(w.hardCtx, stop)()
	defer w.appear(serving)()
	var beside, slots sync.WaitGroup
	looked := make(chan struct{})
	beside.Go(func() { w.admit(serving, func() { close(looked) }) })
	<-looked
	beside.Go(func() { w.sendUnsent(serving) })
	looking, unlook := context.WithCancel(context.WithoutCancel(ctx)) // while anything runs
	defer unlook()
	beside.Go(func() { w.full.watch(looking) })
	for n := range w.Slots {
		slots.Go(func() { w.serve(serving, n+1) })
	}
	if w.IdleExit > 0 {
		beside.Go(func() {
			if w.untilIdle(serving, w.IdleExit) {
				w.Log.Info().Dur("for", w.IdleExit).Msg("there was no work; the worker ends")
				stop()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		slots.Wait()
		w.draining.Store(true) // whatever ended them
		w.uploads.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		w.drain(done)
	case <-w.hardCtx.Done():
		w.drain(done)
	}
	stop()
	unlook()
	beside.Wait()
	w.hard(trial.ErrHandOver) // releases the context; nothing runs any more
	w.gate.close()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(w.shared.close(closing), w.spares.Close(), w.notes.close())
}

// Hurry stops the worker and hands every running trial over at once, instead of letting
// it go on until the drain timeout.
func (w *Worker) Hurry() { w.hard(trial.ErrHandOver) }

// Stopped is closed when Run has returned.
func (w *Worker) Stopped() <-chan struct{} { return w.stopped }

func (w *Worker) drain(done <-chan struct{}) {
	w.draining.Store(true)
	timer := time.NewTimer(w.DrainTimeout)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	case <-w.hardCtx.Done():
	}
	w.hard(trial.ErrHandOver)
	<-done
}

func (w *Worker) emit(e Event) {
	e.At = time.Now()
	w.presence.note(e)
	if w.OnEvent != nil {
		w.OnEvent(e)
	}
}
