// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// apiPrefix is where the JetStream API of the connection's account is.
const apiPrefix = "$JS.API."

// api makes a request of the JetStream API whose answer nats.go keeps to itself.
func (q *Queue) api(ctx context.Context, subject string, request, response any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	m, err := q.nc.RequestWithContext(ctx, apiPrefix+subject, body)
	if err != nil {
		return err
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &failed); err != nil {
		return err
	}
	if failed.Error != nil {
		return failed.Error
	}
	if response == nil {
		return nil
	}
	return json.Unmarshal(m.Data, response)
}

// deleteMessage removes one message by its number. It is an error if it is gone.
func (q *Queue) deleteMessage(ctx context.Context, stream string, seq uint64) error {
	return q.api(ctx, "STREAM.MSG.DELETE."+stream, struct {
		Seq     uint64 `json:"seq"`
		NoErase bool   `json:"no_erase"`
	}{seq, true}, nil)
}

// purgeSubject removes what matches the filter and returns how much that was.
func (q *Queue) purgeSubject(ctx context.Context, stream, filter string) (int, error) {
	return q.purgeUpTo(ctx, stream, filter, everything)
}

// everything is the number up to which all messages are.
const everything = math.MaxUint64

// purgeUpTo is purgeSubject for messages up to a number.
func (q *Queue) purgeUpTo(ctx context.Context, stream, filter string, last uint64) (int, error) {
	var out struct {
		Purged int `json:"purged"`
	}
	err := q.api(ctx, "STREAM.PURGE."+stream, struct {
		Filter string `json:"filter"`
		Before uint64 `json:"seq,omitempty"` // of everything it is 0
	}{filter, last + 1}, &out)
	return out.Purged, err
}

// streamInfo asks for the state of a stream, without its subjects.
func (q *Queue) streamInfo(ctx context.Context, stream string) (info jetstream.StreamInfo, err error) {
	asked := time.Now()
	err = q.api(ctx, "STREAM.INFO."+stream, struct{}{}, &info)
	if err == nil {
		q.clock.set(info.TimeStamp, asked)
	}
	return info, err
}

// getMessage reads one message from the stream's leader.
func (q *Queue) getMessage(ctx context.Context, stream string, request any) (*jetstream.RawStreamMsg, error) {
	var out struct {
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := q.api(ctx, "STREAM.MSG.GET."+stream, request, &out); err != nil {
		return nil, err
	}
	m := &jetstream.RawStreamMsg{
		Subject: out.Message.Subject, Sequence: out.Message.Seq, Data: out.Message.Data, Time: out.Message.Time,
	}
	if len(out.Message.Header) > 0 {
		header, err := nats.DecodeHeadersMsg(out.Message.Header)
		if err != nil {
			return nil, err
		}
		m.Header = header
	}
	return m, nil
}
