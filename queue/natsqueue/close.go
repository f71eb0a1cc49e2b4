// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

// CloseRun implements [queue.Runs]. The entry says first that the run is being closed, in
// the place of what it said before settled was asked: whoever opened the run meanwhile has
// written it anew, and it stays open. The entry goes last, so that closing a run that a
// crash left half closed finishes it. What is purged has the numbers of before: what an
// opener puts in has larger ones.
func (q *Queue) CloseRun(ctx context.Context, run string, settled func(ctx context.Context) (bool, error)) (closed bool, err error) {
	c := closing{q: q}
	if c.trials, err = q.lastSeq(ctx, trialsStream); err != nil {
		return false, err
	}
	if c.leases, err = q.lastSeq(ctx, leasesStream); err != nil {
		return false, err
	}
	c.run, c.revision, err = q.readRun(ctx, run)
	switch {
	case c.run.Closing: // and not all of it is removed
	case errors.Is(err, queue.ErrUnknownRun):
		return true, nil
	case err != nil:
		return false, err
	default:
		if begun, err := c.begin(ctx, settled); err != nil || !begun {
			return false, err
		}
	}
	return c.finish(ctx)
}

// closing is a run on its way out.
type closing struct {
	q *Queue
	// The last numbers in TRIALS and in the leases when the entry was read.
	trials, leases uint64
	run            openRun
	revision       uint64 // of the entry
}

// begin marks the run, if nothing is left of it.
func (c *closing) begin(ctx context.Context, settled func(ctx context.Context) (bool, error)) (begun bool, err error) {
	st, err := c.q.Stats(ctx, c.run.ID)
	if errors.Is(err, queue.ErrUnknownRun) || err == nil && st.Live() > 0 {
		return false, nil // somebody else closes it, or has put something in
	}
	if err != nil {
		return false, err
	}
	if ok, err := settled(ctx); err != nil || !ok {
		return false, err
	}
	c.run.Closing = true
	value, err := json.Marshal(c.run)
	if err != nil {
		return false, err
	}
	c.revision, err = c.q.swap(ctx, "$KV."+runsBucket+"."+c.run.ID, value, c.revision)
	if isConflict(err) {
		return false, nil // somebody opened it
	}
	return err == nil, err
}

// finish removes what the run has on the server. Where somebody opens it meanwhile, the
// consumer is as that one wants it at the end.
func (c *closing) finish(ctx context.Context) (closed bool, err error) {
	q, run := c.q, c.run.ID
	if err := q.dropConsumer(ctx, run); err != nil {
		return false, err
	}
	for _, what := range []struct {
		stream, filter string
		last           uint64 // 0 when there was no such stream
	}{
		{trialsStream, runFilter("*", c.run.Run), c.trials},
		{leasesStream, leaseFilter(run), c.leases},
		{startsStream, "$KV." + startsBucket + "." + run, everything}, // a right to start is soon had anew
	} {
		err := q.call(ctx, "purge what "+what.stream+" has of run "+run, func(ctx context.Context) error {
			if what.last == 0 {
				return nil
			}
			_, err := q.purgeUpTo(ctx, what.stream, what.filter, what.last)
			if isMissing(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return false, err
		}
	}
	kv, err := q.kv(ctx, runsBucket)
	if err != nil {
		return false, err
	}
	err = q.call(ctx, "close run "+run, func(ctx context.Context) error {
		return kv.Purge(ctx, run, jetstream.LastRevision(c.revision), jetstream.PurgeTTL(markerTTL))
	})
	if !isConflict(err) {
		return err == nil, err
	}
	now, err := q.getRun(ctx, run)
	if errors.Is(err, queue.ErrUnknownRun) {
		return true, nil // another closed it
	}
	if err != nil {
		return false, err
	}
	return false, q.setConsumer(ctx, now)
}

// lastSeq is the number of the last message of a stream; 0 where there is no stream.
func (q *Queue) lastSeq(ctx context.Context, stream string) (last uint64, err error) {
	err = q.call(ctx, "read the state of "+stream, func(ctx context.Context) error {
		info, err := q.streamInfo(ctx, stream)
		last = info.State.LastSeq
		if isMissing(err) {
			return nil
		}
		return err
	})
	return last, err
}
