// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/queue"
)

const (
	// leaseWait is how long a slot waits for a job before it comes by and asks anew, so
	// that a call that hangs is told from one that waits.
	leaseWait = 2 * time.Minute
	// leaseBound is how long a slot may not come by.
	leaseBound = 2*leaseWait + time.Minute
)

// serve is one slot: it asks for one job, never ahead, and runs it.
func (w *Worker) serve(ctx context.Context, number int) {
	pulse := w.dog.Watch(fmt.Sprintf("slot %d", number), leaseBound)
	defer pulse.End()
	var pause backoff
	for ctx.Err() == nil && w.hardCtx.Err() == nil {
		pulse.Rest()
		if !w.gate.pass(ctx) {
			return
		}
		if w.diskIsLow() {
			continue // the gate is held now
		}
		if !w.quota.take(ctx) {
			return
		}
		pulse.Touch()
		nonce := bundle.NewNonce()
		lease, err := w.lease(ctx, nonce)
		pulse.Rest()
		if lease != nil {
			pause = backoff{}
			w.load.begin()
			w.quota.settle(w.handle(lease, nonce))
			continue
		}
		w.quota.settle(false)
		switch {
		case ctx.Err() != nil, errors.Is(err, queue.ErrClosed):
			return
		case err != nil:
			w.load.notItself()
			w.Log.Warn().Err(err).Msg("no job could be leased; trying again")
			pause.wait(ctx)
		}
	}
}

// lease asks for a job for a while, as long as the gate is open. It returns neither a
// lease nor an error when that while is over.
func (w *Worker) lease(ctx context.Context, nonce string) (queue.Lease, error) {
	waiting, stop := w.gate.while(ctx, leaseWait/2+rand.N(leaseWait))
	defer stop()
	lease, err := w.Queue.Lease(waiting, queue.Request{
		Worker: w.Name, Pool: w.Pool, Offers: w.offers(), Except: w.refusals.runs(), Nonce: nonce,
	})
	if err != nil && waiting.Err() != nil && !errors.Is(err, queue.ErrClosed) {
		return nil, nil
	}
	return lease, err
}
