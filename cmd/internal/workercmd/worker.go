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

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/procs"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/queues"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/governor"
	"github.com/tidemill/tidemill/internal/sweep"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/runtime"
)

type options struct {
	store, work string
	queue       queues.Flags
	pool        string
	slots       int
	types       []string
	offers      []string
	limits      limits
	listen      string
	sweep       runtimes.SweepFlags
	log         *app.LogFlags
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

It also ends by itself, with --idle-exit or --max-trials. It begins no trial while disk or
memory run low, and goes on by itself when there is a quarter more again. With --listen it
answers GET /healthz (503: start it anew), /readyz (503: it takes no work, and why) and
/status on that address, in JSON.

Secrets that runs name come from the worker's environment. What needs one that isn't set
is left to other workers, uncharged; tidemill status names the worker and the variable.
` + app.ExitHelp("stopped when it was asked to, or ended by --idle-exit or --max-trials", "", ""),
		Example: "  tidemill " + use + " --queue nats://127.0.0.1:4222 --store /mnt/evals --slots 8",
		Args:    app.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.execute(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.store, "store", local.DefaultDir, stores.Help)
	o.queue.Register(f)
	o.queue.RegisterSettle(f)
	f.StringVar(&o.work, "work-dir", "tidemill-work", "`directory` for sandboxes, packs and spool; one worker at a time may use it")
	f.StringVar(&o.pool, "pool", queue.DefaultPool, "pool of runs to serve")
	f.IntVar(&o.slots, "slots", goruntime.NumCPU(), "how many trials run at once")
	f.StringSliceVar(&o.types, "runtimes", []string{"subprocess"}, "runtimes to offer: "+strings.Join(runtimes.Types(), ", "))
	f.StringSliceVar(&o.offers, "offers", nil, "what runs may need beyond a runtime and find here, such as gpu")
	f.StringVar(&o.listen, "listen", "", "`address` to answer probes on, such as 127.0.0.1:8080; port 0 takes a free one (default none)")
	o.limits.register(f)
	o.sweep.Register(f)
	return cmd
}

func (o options) execute(cmd *cobra.Command) (err error) {
	procs.Widen()
	ctx := cmd.Context()
	log, err := o.log.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if o.slots < 1 || o.slots > app.MaxSlots {
		return app.Usage(fmt.Errorf("--slots %d: want 1 to %d", o.slots, app.MaxSlots))
	}
	if err := errors.Join(o.limits.check(), o.checkNeeds()); err != nil {
		return err
	}
	if err := o.sweep.Check(); err != nil {
		return err
	}
	if err := o.queue.Check(); err != nil {
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
	o.queue.Wait, o.queue.OnWait = o.limits.wait, func(why error) {
		log.Warn().Err(why).Dur("queue_wait", o.limits.wait).Msg("the queue can't be reached; waiting for it")
	}
	q, err := o.queue.Dial(ctx, identity.StoreUUID)
	switch {
	case err != nil && ctx.Err() != nil: // it was asked to stop, and has nothing to give back
		return nil
	case err != nil:
		return err
	}
	defer app.Closing(&err, q.Close)
	rts, err := o.runtimes(dir, identity.StoreUUID)
	if err != nil {
		return err
	}
	defer app.Closing(&err, func() error { return runtimes.Close(rts) })
	lines := &progress.Lines{W: cmd.ErrOrStderr()}
	c := worker.Config{
		Pool: o.pool, Slots: o.slots, Store: store, StoreUUID: identity.StoreUUID, Queue: q, Runtimes: rts,
		Offers: o.offers, Others: true, Dir: dir.Worker(), Version: version.String(), Log: log, OnEvent: lines.Observe,
	}
	o.limits.apply(&c)
	w, err := worker.New(c)
	if err != nil {
		return err
	}
	probes, err := o.probes(w, store, q, log)
	if err != nil {
		return err
	}
	defer app.Closing(&err, probes)
	// Others may work for the same store, on the same engine too.
	sweeping, err := o.sweep.Start(ctx, sweep.Config{
		Store: identity.StoreUUID, Leases: q, Log: log,
		Sources: runtimes.Sources(rts, func(kind string) bool { return runtimes.Alone(kind, true) }),
	}, w)
	if err != nil {
		return err
	}
	gov, err := governor.New(governor.Config{Store: store, Queue: q, Name: w.Name, Log: log})
	if err != nil {
		return err
	}
	return run(ctx, w, sweeping, gov, log)
}

// checkNeeds refuses a pool or an offer that no run could name.
func (o options) checkNeeds() error {
	if _, err := queue.NewClass(append([]string{"any"}, o.offers...)...); err != nil {
		return app.Usage(fmt.Errorf("--offers: %w", err))
	}
	if err := (queue.Run{ID: "any", Pool: o.pool, Class: "any"}).WithDefaults().Validate(); err != nil || o.pool == "" {
		return app.Usage(fmt.Errorf("--pool %q: want [a-z0-9][a-z0-9-]{0,62}", o.pool))
	}
	return nil
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

func run(ctx context.Context, w *worker.Worker, sweeping func(context.Context), gov *governor.Governor, log zerolog.Logger) error {
	log.Info().Str("worker", w.Name).Int("slots", w.Slots).Str("pool", w.Pool).Msg("worker begins")
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-app.Hurry(ctx):
			w.Hurry()
		case <-w.Stopped():
		}
	})
	working, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { sweeping(working) })
	wg.Go(func() { gov.Run(working) })
	err := w.Run(ctx)
	stop()
	wg.Wait()
	if err != nil {
		return fmt.Errorf("worker %s: %w", w.Name, err)
	}
	return nil
}
