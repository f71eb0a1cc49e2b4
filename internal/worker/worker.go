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
	"github.com/tidemill/tidemill/internal/packcache"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/queue"
)

// Worker runs trials. Make one with [New] and call Run once.
type Worker struct {
	Config
	packs *packcache.Cache
	runs  *runCache

	spool   chan struct{}  // a place for each trial between teardown and the end of its upload
	trials  sync.WaitGroup // leased jobs, until they are ended
	hardCtx context.Context
	hard    context.CancelCauseFunc // ends every running trial
	stopped chan struct{}           // closed when Run returns
}

// New returns a worker.
func New(c Config) (*Worker, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	packs, err := packcache.New(c.Store, filepath.Join(c.Dir, "packs"))
	if err != nil {
		return nil, err
	}
	w := &Worker{Config: c, packs: packs, spool: make(chan struct{}, c.Spool), stopped: make(chan struct{})}
	w.runs = newRunCache(w)
	w.hardCtx, w.hard = context.WithCancelCause(context.Background())
	// What a crash left in the spool was never committed; its attempts will be repeated.
	if err := os.RemoveAll(w.spoolDir()); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if err := os.MkdirAll(w.spoolDir(), 0o700); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	return w, nil
}

func (w *Worker) spoolDir() string { return filepath.Join(w.Dir, "spool") }

// Run serves until ctx ends. Then it takes no more, lets what runs go on for
// DrainTimeout, and hands the rest over. It returns when nothing of it runs any more; its
// error is about what it could not give back.
func (w *Worker) Run(ctx context.Context) error {
	defer close(w.stopped)
	var slots sync.WaitGroup
	for range w.Slots {
		slots.Go(func() { w.serve(ctx) })
	}
	done := make(chan struct{})
	go func() {
		slots.Wait()
		w.trials.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		w.drain(done)
	}
	w.hard(trial.ErrHandOver) // releases the context; nothing runs any more
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return w.runs.close(closing)
}

// Hurry hands every running trial over at once, instead of letting it go on until the
// drain timeout.
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
	for ctx.Err() == nil {
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

// backoff waits a little longer each time, up to 5 seconds.
type backoff struct{ d time.Duration }

func (b *backoff) wait(ctx context.Context) {
	b.d = min(max(2*b.d, 50*time.Millisecond), 5*time.Second)
	timer := time.NewTimer(b.d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (w *Worker) emit(e Event) {
	if w.OnEvent != nil {
		e.At = time.Now()
		w.OnEvent(e)
	}
}
