// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ack removes the message of a job that is ours, and returns when the server has
// confirmed it: a plain ack is lost when the connection closes after it. A server
// that was killed right after the delivery has forgotten it and answers no ack;
// then the message is deleted by its number.
func (q *Queue) ack(ctx context.Context, d *delivery) error {
	var last error
	for range q.cfg.AckRepeats {
		last = q.callFor(ctx, q.cfg.CallTimeout/2, "ack "+d.ID.String(), func(ctx context.Context) error {
			_, err := q.nc.RequestWithContext(ctx, d.reply, []byte("+ACK"))
			return err
		})
		if last == nil {
			return nil
		}
		if errors.Is(last, nats.ErrNoResponders) || ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return last
	}
	return q.deleteJob(ctx, d)
}

func (q *Queue) deleteJob(ctx context.Context, d *delivery) error {
	return q.call(ctx, "delete "+d.ID.String(), func(ctx context.Context) error {
		err := q.deleteMessage(ctx, trialsStream, d.seq)
		if err == nil || isMissing(err) {
			return nil
		}
		// The error of a message that is gone has no code of its own.
		_, reading := q.messageAt(ctx, trialsStream, d.seq)
		switch {
		case errors.Is(reading, jetstream.ErrMsgNotFound), isMissing(reading):
			return nil
		case reading != nil:
			return reading
		}
		return err
	})
}

// exists reports whether a delivery's message is still there.
func (q *Queue) exists(ctx context.Context, d *delivery) (there bool, err error) {
	err = q.call(ctx, "find "+d.ID.String(), func(ctx context.Context) error {
		_, err := q.messageAt(ctx, trialsStream, d.seq)
		there = err == nil
		if errors.Is(err, jetstream.ErrMsgNotFound) || isMissing(err) {
			return nil
		}
		return err
	})
	return there, err
}

// beat keeps the server from delivering the message again. It is sent after the
// lease was renewed, and needs no answer: the lease decides.
func (q *Queue) beat(d *delivery) { _ = q.nc.Publish(d.reply, []byte("+WPI")) }

// handBack has the server deliver the message again, not before the delay.
func (q *Queue) handBack(d *delivery, delay time.Duration) {
	body := []byte("-NAK")
	if delay > 0 {
		body = fmt.Appendf(body, ` {"delay": %d}`, delay.Nanoseconds())
	}
	_ = q.nc.Publish(d.reply, body)
}
