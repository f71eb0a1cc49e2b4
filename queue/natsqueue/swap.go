// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// swap writes a subject if its last message has this number, 0 for none, and
// returns the number of the new one.
func (q *Queue) swap(ctx context.Context, subject string, value []byte, revision uint64) (next uint64, err error) {
	return q.swapFor(ctx, subject, value, revision, 0)
}

// swapFor is swap of an entry that the server lets go after its life, in whole seconds; 0
// for never.
func (q *Queue) swapFor(ctx context.Context, subject string, value []byte, revision uint64, life time.Duration) (next uint64, err error) {
	m := &nats.Msg{Subject: subject, Data: value, Header: nats.Header{
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(revision, 10)},
	}}
	if life > 0 {
		m.Header[jetstream.MsgTTLHeader] = []string{life.String()}
	}
	err = q.call(ctx, "write "+subject, func(ctx context.Context) (err error) {
		next, err = q.store(ctx, m)
		return err
	})
	return next, err
}

// store puts one message into its stream and returns its number there. nats.go's Publish
// asks again for a while where nobody answers. Here the caller finds out why, which must not
// wait: until the holders of leases are back in a new bucket, others are at the door. And
// two such writes are most of what a trial costs the queue, so that they are made by hand.
func (q *Queue) store(ctx context.Context, m *nats.Msg) (seq uint64, err error) {
	answer, err := q.nc.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return 0, jetstream.ErrNoStreamResponse
	}
	if err != nil {
		return 0, err
	}
	var ack struct {
		Stream string              `json:"stream"`
		Seq    uint64              `json:"seq"`
		Error  *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, fmt.Errorf("%w: %w", jetstream.ErrInvalidJSAck, err)
	}
	switch {
	case ack.Error != nil:
		return 0, ack.Error
	case ack.Stream == "":
		return 0, jetstream.ErrInvalidJSAck
	}
	return ack.Seq, nil
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
