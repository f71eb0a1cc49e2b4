// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

// pausedUntil is far away; only a resume ends a pause.
var pausedUntil = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// maxWaiting is how many pulls may be parked at a consumer. Only those that come
// while the run is at its cap are, for [Config.ProbeTimeout].
const maxWaiting = 8192

// consumerConfig is how the run is handed out.
func (q *Queue) consumerConfig(r openRun) jetstream.ConsumerConfig {
	c := jetstream.ConsumerConfig{
		Durable:       r.ID,
		FilterSubject: runFilter(waitingSpace, r.Run),
		AckPolicy:     jetstream.AckExplicitPolicy,
		// No BackOff, which would override it; and no end of deliveries, after
		// which a message is stuck where nobody sees it.
		AckWait:       q.cfg.LeaseTTL,
		MaxDeliver:    -1,
		MaxAckPending: -1,
		MaxWaiting:    maxWaiting,
		Metadata:      map[string]string{storeKey: q.cfg.Store},
	}
	if r.Limits.MaxInFlight > 0 {
		c.MaxAckPending = r.Limits.MaxInFlight
	}
	if r.Paused {
		c.PauseUntil = &pausedUntil
	}
	return c
}

// setConsumer makes the run's consumer what the entry says. An update leaves a
// pause as it is, so that is said apart. Resuming needs no trick to wake pulls:
// none of ours waits.
func (q *Queue) setConsumer(ctx context.Context, r openRun) error {
	return q.call(ctx, "set up the consumer of run "+r.ID, func(ctx context.Context) error {
		c, err := q.js.CreateOrUpdateConsumer(ctx, trialsStream, q.consumerConfig(r))
		if err != nil {
			return err
		}
		switch now := c.CachedInfo().Paused; {
		case r.Paused && !now:
			_, err = q.js.PauseConsumer(ctx, trialsStream, r.ID, pausedUntil)
		case !r.Paused && now:
			_, err = q.js.ResumeConsumer(ctx, trialsStream, r.ID)
		}
		return err
	})
}

func (q *Queue) dropConsumer(ctx context.Context, run string) error {
	return q.call(ctx, "delete the consumer of run "+run, func(ctx context.Context) error {
		err := q.js.DeleteConsumer(ctx, trialsStream, run)
		if errors.Is(err, jetstream.ErrConsumerNotFound) || isMissing(err) {
			return nil
		}
		return err
	})
}

// dropForeignConsumer deletes a consumer that is left from a run of this name in another
// pool or class: it would not find the jobs of this one. That comes before the run is in
// the bucket, while no worker looks after its consumer: the server removes the files of
// a deleted consumer a little later, and would take those of a new one of that name.
func (q *Queue) dropForeignConsumer(ctx context.Context, r queue.Run) error {
	if _, err := q.getRun(ctx, r.ID); !errors.Is(err, queue.ErrUnknownRun) {
		return err
	}
	foreign := false
	err := q.call(ctx, "find the consumer of run "+r.ID, func(ctx context.Context) error {
		c, err := q.js.Consumer(ctx, trialsStream, r.ID)
		if err == nil {
			foreign = c.CachedInfo().Config.FilterSubject != runFilter(waitingSpace, r)
		}
		return err
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) || (err == nil && !foreign) {
		return nil
	}
	if err != nil {
		return err
	}
	return q.dropConsumer(ctx, r.ID)
}

// restoreConsumer makes a consumer anew that somebody deleted, if its run is
// open. No answer from a consumer may also mean that nobody leads it just now.
func (q *Queue) restoreConsumer(ctx context.Context, run string) error {
	err := q.call(ctx, "find the consumer of run "+run, func(ctx context.Context) error {
		_, err := q.js.Consumer(ctx, trialsStream, run)
		return err
	})
	if !errors.Is(err, jetstream.ErrConsumerNotFound) && !isMissing(err) {
		return err
	}
	r, err := q.getRun(ctx, run)
	if errors.Is(err, queue.ErrUnknownRun) {
		// Closed, or wiped with all the rest, and the watch did not tell.
		q.board.remove(run)
		q.readRunsAnew()
		return nil
	}
	if err != nil {
		return err
	}
	return q.repaired(ctx, func() error { return q.setConsumer(ctx, r) })
}
