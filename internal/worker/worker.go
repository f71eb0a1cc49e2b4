// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/queue"
)

// Worker runs trials. Make one with [New] and call Run once.
type Worker struct {
	Config
	shared *shared

	spool   chan struct{}  // a place for each trial between teardown and the end of its upload
	uploads sync.WaitGroup // trials that left their slot
	hardCtx context.Context
	hard    context.CancelCauseFunc // ends every running trial
	stopped chan struct{}           // closed when Run returns

	liveMu sync.Mutex
	live   map[string]*Attempt // those that run, by trial
}

// New returns a worker.
func New(c Config) (*Worker, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	w := &Worker{Config: c, spool: make(chan struct{}, c.Spool), stopped: make(chan struct{}), live: map[string]*Attempt{}}
	// What a crash left in the spool was never committed; its attempts will be repeated.
	if err := os.RemoveAll(w.spoolDir()); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	for _, dir := range []string{w.spoolDir(), w.unsentDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("worker: %w", err)
		}
	}
	w.hardCtx, w.hard = context.WithCancelCause(context.Background())
	var err error
	if w.shared, err = newShared(w); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	return w, nil
}

func (w *Worker) spoolDir() string { return filepath.Join(w.Dir, "spool") }

// unsentDir has the bundles that the store would not take. Nobody clears it.
func (w *Worker) unsentDir() string { return filepath.Join(w.Dir, "unsent") }

// Run serves until ctx ends. Then it takes no more, lets what runs go on for
// DrainTimeout, and hands the rest over. It returns when nothing of it runs any more; its
// error is about what it could not give back.
func (w *Worker) Run(ctx context.Context) error {
	defer close(w.stopped)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(w.hardCtx, stop)()
	var slots sync.WaitGroup
	for range w.Slots {
		slots.Go(func() { w.serve(serving) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		slots.Wait()
		w.uploads.Wait()
	}()
	select {
	case <-done:
	case <-serving.Done():
		w.drain(done)
	}
	w.hard(trial.ErrHandOver) // releases the context; nothing runs any more
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return w.shared.close(closing)
}

// Hurry stops the worker and hands every running trial over at once, instead of letting
// it go on until the drain timeout.
func (w *Worker) Hurry() { w.hard(trial.ErrHandOver) }

// Stopped is closed when Run has returned.
func (w *Worker) Stopped() <-chan struct{} { return w.stopped }

func (w *Worker) drain(done <-chan struct{}) {
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

// serve is one slot.
func (w *Worker) serve(ctx context.Context) {
	var pause backoff
	for ctx.Err() == nil && w.hardCtx.Err() == nil {
		nonce := bundle.NewNonce()
		lease, err := w.Queue.Lease(ctx, queue.Request{Worker: w.Name, Pool: w.Pool, Offers: w.offers(), Nonce: nonce})
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, queue.ErrClosed) {
				return
			}
			w.Log.Warn().Err(err).Msg("no job could be leased; trying again")
			pause.wait(ctx)
			continue
		}
		pause = backoff{}
		w.handle(lease, nonce)
	}
}

func (w *Worker) emit(e Event) {
	if w.OnEvent != nil {
		e.At = time.Now()
		w.OnEvent(e)
	}
}
