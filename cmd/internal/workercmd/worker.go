// SPDX-License-Identifier: Apache-2.0

// Package workercmd is tidemill worker.
package workercmd

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/queues"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/runtime"
)

type options struct {
	store, queue, work string
	pool               string
	slots              int
	types              []string
	drain, grace       time.Duration
	log                *app.LogFlags
}

// Command returns the worker command under a name of its own.
func Command(use string, log *app.LogFlags) *cobra.Command {
	o := options{log: log}
	cmd := &cobra.Command{
		Use:   use,
		Short: "Lease trials from a queue and run them",
		Long: `Worker leases trials of its pool from the queue, one for each free slot, runs them, and
commits their bundles to the store. Start as many as you like.

SIGTERM or Ctrl-C stops it: it takes no more, lets running trials go on for the drain
timeout, and hands the rest over to other workers, uncharged. A second signal hands over
at once. A JSON line for each finished trial goes to stderr.

Secrets that runs name come from the worker's environment.
` + app.ExitHelp("stopped when it was asked to", "", ""),
		Example: "  tidemill " + use + " --queue nats://127.0.0.1:4222 --store /mnt/evals --slots 8",
		Args:    app.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.execute(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.store, "store", local.DefaultDir, stores.Help)
	f.StringVar(&o.queue, "queue", "", queues.Help)
	f.StringVar(&o.work, "work-dir", "tidemill-work", "`directory` for sandboxes, packs and spool; one worker at a time may use it")
	f.StringVar(&o.pool, "pool", queue.DefaultPool, "pool of runs to serve")
	f.IntVar(&o.slots, "slots", goruntime.NumCPU(), "how many trials run at once")
	f.StringSliceVar(&o.types, "runtimes", []string{"subprocess"}, "runtimes to offer: "+strings.Join(runtimes.Types(), ", "))
	f.DurationVar(&o.drain, "drain-timeout", 30*time.Second, "how long running trials may go on after the first signal")
	f.DurationVar(&o.grace, "outage-grace", 10*time.Minute, "how long a trial goes on while the queue can't be reached")
	return cmd
}

func (o options) execute(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	log, err := o.log.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if o.slots < 1 || o.slots > app.MaxSlots {
		return app.Usage(fmt.Errorf("--slots %d: want 1 to %d", o.slots, app.MaxSlots))
	}
	if o.drain < 0 {
		return app.Usage(fmt.Errorf("--drain-timeout %s: want 0s or more", o.drain))
	}
	if err := queues.Check(o.queue); err != nil {
		return err
	}
	dir, err := local.Acquire(o.work, "tidemill worker")
	if err != nil {
		return local.Explain(err, "work-dir")
	}
	defer app.Closing(&err, dir.Release)
	store, identity, err := stores.OpenForWriting(ctx, o.store)
	if err != nil {
		return err
	}
	defer app.Closing(&err, store.Close)
	q, err := queues.Dial(ctx, o.queue, identity.StoreUUID)
	if err != nil {
		return err
	}
	defer app.Closing(&err, q.Close)
	rts, err := o.runtimes(dir, identity.StoreUUID)
	if err != nil {
		return err
	}
	defer app.Closing(&err, func() error { return runtimes.Close(rts) })
	if err := runtimes.Sweep(ctx, rts, identity.StoreUUID, log); err != nil {
		return err
	}
	lines := &progress.Lines{W: cmd.ErrOrStderr()}
	w, err := worker.New(worker.Config{
		Pool: o.pool, Slots: o.slots, Store: store, StoreUUID: identity.StoreUUID, Queue: q, Runtimes: rts,
		Dir: dir.Worker(), Version: version.String(), Log: log, DrainTimeout: o.drain, OutageGrace: o.grace,
		OnEvent: lines.Observe,
	})
	if err != nil {
		return err
	}
	return run(ctx, w, log)
}

// runtimes makes those that the worker offers.
func (o options) runtimes(dir *local.Dir, storeUUID string) (map[string]runtime.Runtime, error) {
	hide := []string{dir.Store()}
	if store, ok := stores.Directory(o.store); ok {
		hide = append(hide, store)
	}
	rts, err := runtimes.New(runtimes.Config{Dir: dir.Work(), StoreUUID: storeUUID, Hide: hide}, o.types...)
	if _, ok := errors.AsType[*runtimes.UnknownTypeError](err); ok {
		return nil, app.Usage(fmt.Errorf("--runtimes: %w", err))
	}
	return rts, err
}

func run(ctx context.Context, w *worker.Worker, log zerolog.Logger) error {
	log.Info().Str("worker", w.Name).Int("slots", w.Slots).Str("pool", w.Pool).Msg("worker begins")
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-app.Hurry(ctx):
			w.Hurry()
		case <-w.Stopped():
		}
	})
	err := w.Run(ctx)
	wg.Wait()
	if err != nil {
		return fmt.Errorf("worker %s: %w", w.Name, err)
	}
	return nil
}
