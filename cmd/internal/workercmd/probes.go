// SPDX-License-Identifier: Apache-2.0

package workercmd

import (
	"context"
	"errors"
	"io"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/internal/health"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue"
)

// probes answers questions about a worker on the address that was asked for, until the
// returned function is called.
func (o options) probes(w *worker.Worker, store bundle.Store, q queue.Inspector, log zerolog.Logger) (stop func() error, err error) {
	if o.listen == "" {
		return func() error { return nil }, nil
	}
	s, err := health.Serve(o.listen, health.Handler(health.Config{
		Live: w.Stuck, Ready: w.Unready, Status: func() any { return w.Status() },
		Checks: []health.Check{
			{Name: "store", Ask: func(ctx context.Context) error { return askStore(ctx, store) }},
			{Name: "queue", Ask: func(ctx context.Context) error { return askQueue(ctx, q) }},
		},
	}))
	if err != nil {
		return nil, app.Usage(err)
	}
	log.Info().Str("listen", s.Addr()).Msg("probes are answered")
	return s.Close, nil
}

// askStore reads the smallest thing that is in every store.
func askStore(ctx context.Context, store bundle.Store) error {
	r, _, err := store.Get(ctx, bundle.StoreKey)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}

// askQueue asks about a run that may not be there, which is one request and no work.
func askQueue(ctx context.Context, q queue.Inspector) error {
	_, err := q.Stats(ctx, "readyz")
	if errors.Is(err, queue.ErrUnknownRun) {
		return nil
	}
	return err
}
