// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/tidemill/tidemill/queue"
)

// Our consumers deliver without end. If somebody gives one an end, its server says once
// of each job that came to it that it won't be delivered any more, and then the job is in
// the stream for ever, counted by nothing. The stream STRANDED keeps these advisories, so
// that they are heard even if nobody listens, and whoever hears one puts the job in anew.

// rescueGroup is the queue group in which one value hears an advisory.
const rescueGroup = "rescue"

// advisory is what the server says.
type advisory struct {
	Consumer string `json:"consumer"`
	Seq      uint64 `json:"stream_seq"`
}

// hearStranded has advisories acted on until the subscription ends.
func (q *Queue) hearStranded() (*nats.Subscription, error) {
	return q.nc.QueueSubscribe(maxDeliveries+"*", rescueGroup, func(*nats.Msg) { q.rescueSoon() })
}

// rescueSoon has somebody look at the stream; the callback of a subscription must not
// wait for answers.
func (q *Queue) rescueSoon() {
	select {
	case q.stranded <- struct{}{}:
	default:
	}
}

// followStranded acts on advisories: those that were kept, then each that is heard.
func (q *Queue) followStranded() {
	q.rescueSoon()
	for {
		select {
		case <-q.life.Done():
			return
		case <-q.stranded:
		}
		// What fails now is in the stream still, for the next one that is heard or for
		// the next process that starts.
		_ = q.rescueAll(q.life)
	}
}

func (q *Queue) rescueAll(ctx context.Context) error {
	var kept []*jetstream.RawStreamMsg
	err := q.longCall(ctx, "read stranded jobs", func(ctx context.Context) error {
		kept = kept[:0]
		found, err := jetstreamext.GetBatch(ctx, q.js, strandedStream, deadBatch, jetstreamext.GetBatchSeq(1))
		if err != nil {
			return err
		}
		for m, err := range found {
			if errors.Is(err, jetstreamext.ErrNoMessages) {
				return nil
			}
			if err != nil {
				return err
			}
			kept = append(kept, m)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range kept {
		var a advisory
		if err := json.Unmarshal(m.Data, &a); err == nil && a.Seq > 0 {
			if err := q.rescue(ctx, a); err != nil {
				return err
			}
		}
		err := q.call(ctx, "delete an advisory", func(ctx context.Context) error {
			return q.deleteMessage(ctx, strandedStream, m.Sequence)
		})
		if errors.Is(err, queue.ErrUnreachable) || ctx.Err() != nil {
			return err
		}
	}
	if len(kept) == deadBatch {
		q.rescueSoon()
	}
	return nil
}

// rescue puts a stranded job in anew, as its next release, and removes the old one. Then
// it gives the consumer back what it should be, so that there is no next time. If somebody
// works on the job still, its lease and its commit count as ever.
func (q *Queue) rescue(ctx context.Context, a advisory) error {
	var m *jetstream.RawStreamMsg
	err := q.call(ctx, "read a stranded job", func(ctx context.Context) (err error) {
		m, err = q.messageAt(ctx, trialsStream, a.Seq)
		return err
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) || isMissing(err) {
		return nil // done after all
	}
	if err != nil {
		return err
	}
	r, err := q.getRun(ctx, runOf(m.Subject))
	if errors.Is(err, queue.ErrUnknownRun) {
		return nil
	}
	if err != nil {
		return err
	}
	id, err := idOf(m.Header.Get)
	if err != nil || strings.HasPrefix(m.Subject, "tidemill."+delayedSpace+".") {
		return nil // nothing of ours
	}
	if err := q.setConsumer(ctx, r); err != nil {
		return err
	}
	id.Release++
	next := q.again(r.Run, queue.Job{ID: id, Run: r.ID, Body: m.Data}, 0)
	if err := q.put(ctx, "rescue "+id.String(), next); err != nil {
		return err
	}
	err = q.deleteJob(ctx, &delivery{Job: queue.Job{ID: id}, seq: a.Seq})
	q.announce(r.Run)
	return err
}
