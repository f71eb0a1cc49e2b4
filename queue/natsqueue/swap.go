// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// swap writes a subject if its last message has this number, 0 for none, and
// returns the number of the new one.
func (q *Queue) swap(ctx context.Context, subject string, value []byte, revision uint64, opts ...jetstream.PublishOpt) (next uint64, err error) {
	// Where nobody answers, the caller finds out why, which must not wait: until the
	// holders of leases are back in a new bucket, others are at the door.
	opts = append(opts, jetstream.WithExpectLastSequencePerSubject(revision), jetstream.WithRetryAttempts(0))
	err = q.call(ctx, "write "+subject, func(ctx context.Context) error {
		ack, err := q.js.Publish(ctx, subject, value, opts...)
		if err == nil {
			next = ack.Sequence
		}
		return err
	})
	return next, err
}

// lastMessage reads a subject's last message from the stream's leader: followers
// that answer direct gets may lag behind.
func (q *Queue) lastMessage(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	return q.getMessage(ctx, stream, struct {
		Last string `json:"last_by_subj"`
	}{subject})
}

// messageAt reads the message with a number.
func (q *Queue) messageAt(ctx context.Context, stream string, seq uint64) (*jetstream.RawStreamMsg, error) {
	return q.getMessage(ctx, stream, struct {
		Seq uint64 `json:"seq"`
	}{seq})
}
