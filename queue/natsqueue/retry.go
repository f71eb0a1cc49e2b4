// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

// emitLag is how long after its time a schedule may fire; a wake before that
// would find nothing.
const emitLag = 300 * time.Millisecond

// Retry implements [queue.Lease]. The next release is a scheduled message, which
// takes no place in MaxAckPending as a nak with a delay would, survives a
// restart, and is dropped as a duplicate if an earlier holder put it in already.
func (l *lease) Retry(ctx context.Context, after time.Duration, body []byte) error {
	next := l.Job()
	next.Release++
	if body != nil {
		next.Body = body
	}
	if err := next.Validate(); err != nil {
		return fmt.Errorf("%w: retry: %w", queue.ErrInvalid, err)
	}
	err := l.end(ctx, func(ctx context.Context) error {
		return l.q.put(ctx, "retry "+next.ID.String(), l.q.again(l.run.Run, next, after))
	})
	if err != nil {
		return err
	}
	if after <= 0 {
		l.q.wake(l.run.Run)
		return nil
	}
	l.q.timers.wakeLater(l.run.Run, after+emitLag)
	return nil
}

// again is the message of a job that is put in once more.
func (q *Queue) again(r queue.Run, j queue.Job, after time.Duration) *nats.Msg {
	m := &nats.Msg{
		Subject: jobSubject(waitingSpace, r, j.Trial),
		Data:    j.Body,
		Header: nats.Header{
			jetstream.MsgIDHeader: {messageID(r.ID, j.ID)},
			jobHeader:             {j.ID.String()}, // what a schedule emits has no message id
		},
	}
	if after <= 0 {
		return m
	}
	m.Subject = jobSubject(delayedSpace, r, j.Trial)
	// Set by hand: the client's option cuts the fraction of the second.
	at := q.clock.atMost().Add(after).UTC()
	m.Header.Set(jetstream.ScheduleHeader, "@at "+at.Format(time.RFC3339Nano))
	m.Header.Set(jetstream.ScheduleTargetHeader, jobSubject(waitingSpace, r, j.Trial))
	return m
}

// Bury implements [queue.Lease].
func (l *lease) Bury(ctx context.Context, reason string) error {
	j := l.delivery.Job
	return l.end(ctx, func(ctx context.Context) error {
		return l.q.put(ctx, "bury "+j.ID.String(), &nats.Msg{
			Subject: deadSubject(l.run.ID, j.Trial),
			Data:    j.Body,
			Header: nats.Header{
				jetstream.MsgIDHeader: {messageID(l.run.ID, j.ID)},
				jobHeader:             {j.ID.String()},
				// Quoted: a header ends with its line.
				reasonHeader: {strconv.QuoteToASCII(reason)},
			},
		})
	})
}

// HandBack implements [queue.Lease]. A message that is given back comes before those that
// were never delivered. Its entry then names no job: whoever gets the message need not wait.
func (l *lease) HandBack(ctx context.Context) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	defer l.leave()
	job := l.mine.Seq
	l.mine.Seq = 0
	err := l.prove(ctx, true)
	l.mine.Seq = job
	if err != nil {
		return err
	}
	err = l.q.callFor(ctx, l.q.cfg.CallTimeout/2, "hand back "+l.delivery.ID.String(), func(ctx context.Context) error {
		_, err := l.q.nc.RequestWithContext(ctx, l.delivery.reply, []byte("-NAK"))
		return err
	})
	if err != nil && ctx.Err() != nil {
		return err
	}
	// A server that has forgotten the delivery answers nothing, and delivers it again anyway
	// when its time to be acked is over. The entry is in nobody's way then.
	l.finish()
	l.q.board.touch(l.run.ID)
	l.q.wake(l.run.Run)
	return nil
}

// put stores one message, or finds that it was stored before.
func (q *Queue) put(ctx context.Context, doing string, m *nats.Msg) error {
	return q.repaired(ctx, func() error {
		return q.call(ctx, doing, func(ctx context.Context) error {
			_, err := q.js.PublishMsg(ctx, m)
			return err
		})
	})
}
