// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

// MaxEvent is the largest event, in bytes.
const MaxEvent = 64 << 10

// Event is one piece of news of a run.
type Event struct {
	Run  string
	At   time.Time // by the server's clock
	Data []byte
}

// Tell puts a piece of news of a run where [Queue.Follow] finds it. Nobody confirms it, and
// nothing may depend on it: the store decides what happened. It costs no waiting. The
// server keeps a day of it, or what fits into 256 MiB.
func (q *Queue) Tell(run string, data []byte) error {
	if err := (queue.Run{ID: run, Class: "any"}).WithDefaults().Validate(); err != nil {
		return fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	if len(data) > MaxEvent {
		return fmt.Errorf("%w: event of run %s of %d bytes: want %d at most", queue.ErrInvalid, run, len(data), MaxEvent)
	}
	if q.life.Err() != nil {
		return queue.ErrClosed
	}
	if err := q.nc.Publish(eventSubject(run), data); err != nil {
		return fmt.Errorf("event of run %s: %w: %w", run, queue.ErrUnreachable, err)
	}
	return nil
}

// Follow returns the news of a run from a moment on, and what comes until ctx ends. It
// outlives the outages of the server, and a stream that was wiped. The one error that it
// yields ends it.
func (q *Queue) Follow(ctx context.Context, run string, since time.Time) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := (queue.Run{ID: run, Class: "any"}).WithDefaults().Validate(); err != nil {
			yield(Event{}, fmt.Errorf("%w: %w", queue.ErrInvalid, err))
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(q.life, cancel)()
		for more := true; more && ctx.Err() == nil; {
			more = q.followFrom(ctx, run, &since, yield)
		}
		if q.life.Err() != nil {
			yield(Event{}, queue.ErrClosed)
		}
	}
}

// followFrom yields what comes until something breaks, and moves since behind it. It
// reports whether to go on.
func (q *Queue) followFrom(ctx context.Context, run string, since *time.Time, yield func(Event, error) bool) (more bool) {
	var messages jetstream.MessagesContext
	err := q.repaired(ctx, func() error {
		return q.longCall(ctx, "follow run "+run, func(ctx context.Context) error {
			c, err := q.js.OrderedConsumer(ctx, eventsStream, jetstream.OrderedConsumerConfig{
				FilterSubjects: []string{eventSubject(run)}, DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: since,
			})
			if err != nil {
				return err
			}
			messages, err = c.Messages()
			return err
		})
	})
	if err != nil {
		return q.pauseAfter(ctx, err, yield)
	}
	defer context.AfterFunc(ctx, messages.Stop)()
	defer messages.Stop()
	for {
		m, err := messages.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
			return ctx.Err() == nil
		}
		if err != nil {
			return q.pauseAfter(ctx, err, yield)
		}
		meta, err := m.Metadata()
		if err != nil {
			return q.pauseAfter(ctx, err, yield)
		}
		*since = meta.Timestamp.Add(time.Nanosecond)
		if !yield(Event{Run: run, At: meta.Timestamp, Data: m.Data()}, nil) {
			return false
		}
	}
}

// pauseAfter waits a little after an error, or yields one that time does not heal.
func (q *Queue) pauseAfter(ctx context.Context, err error, yield func(Event, error) bool) (more bool) {
	if ctx.Err() != nil {
		return false
	}
	if errors.Is(err, queue.ErrInvalid) || errors.Is(err, queue.ErrConflict) {
		yield(Event{}, err)
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(rewatchAfter): // the server may be on its way back
		return true
	}
}
