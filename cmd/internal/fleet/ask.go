// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/queues"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// Dial opens the queue of a store's fleet; nil where flags name none. One that can't be
// reached, or serves another store, is told, and is no reason to say nothing of this one.
func Dial(ctx context.Context, store bundle.Store, flags *queues.Flags, stderr io.Writer) (*natsqueue.Queue, error) {
	if flags.URL == "" {
		return nil, nil
	}
	identity, err := bundle.ReadIdentity(ctx, store)
	if err != nil {
		return nil, err
	}
	q, err := flags.Dial(ctx, identity.StoreUUID)
	if errors.Is(err, queue.ErrUnreachable) || errors.Is(err, queue.ErrConflict) {
		fmt.Fprintf(stderr, "tidemill: %v; this is what the store knows\n", err)
		return nil, nil
	}
	return q, err
}

// Place is where a trial runs.
type Place struct {
	Worker string
	queue.Running
}

// Running asks the roster of a store's fleet which trials run, and where; none where flags
// name no queue. Workers that run very many don't name all of them.
func Running(ctx context.Context, store bundle.Store, flags *queues.Flags, stderr io.Writer) (_ map[string]Place, err error) {
	q, err := Dial(ctx, store, flags, stderr)
	if q == nil || err != nil {
		return nil, err
	}
	defer app.Closing(&err, q.Close)
	workers, err := q.Workers(ctx)
	if err != nil {
		return nil, err
	}
	return Places(workers), nil
}

// Places are the trials that workers run. Of one that two believe to have, the later
// attempt is told.
func Places(workers []queue.Presence) map[string]Place {
	out := map[string]Place{}
	for _, w := range workers {
		for _, r := range w.Running {
			if was, ok := out[r.TrialID]; !ok || was.Attempt < r.Attempt {
				out[r.TrialID] = Place{Worker: w.Worker, Running: r}
			}
		}
	}
	return out
}
