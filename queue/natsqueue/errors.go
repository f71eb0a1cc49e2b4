// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

// Codes of the server's errors that nats.go has no name for.
const (
	codeBatchHasDuplicate jetstream.ErrorCode = 10201
	codeNoPeers           jetstream.ErrorCode = 10005
	codeNoResources       jetstream.ErrorCode = 10023
	codeNotClustered      jetstream.ErrorCode = 10074
	codeTooManyBatches    jetstream.ErrorCode = 10210
	codeBatchIncomplete   jetstream.ErrorCode = 10176
)

// call runs one exchange with the server under a deadline of its own and says
// what became of it in the contract's words.
func (q *Queue) call(ctx context.Context, doing string, exchange func(ctx context.Context) error) error {
	return q.callFor(ctx, q.cfg.CallTimeout, doing, exchange)
}

// patience is how many times CallTimeout an exchange of many messages may take.
const patience = 5

// longCall is a call of many messages: a batch of a thousand with its fsync, or
// a listing.
func (q *Queue) longCall(ctx context.Context, doing string, exchange func(ctx context.Context) error) error {
	return q.callFor(ctx, patience*q.cfg.CallTimeout, doing, exchange)
}

func (q *Queue) callFor(ctx context.Context, limit time.Duration, doing string, exchange func(ctx context.Context) error) error {
	if err := q.life.Err(); err != nil {
		return fmt.Errorf("%s: %w", doing, queue.ErrClosed)
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := exchange(bounded)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case q.life.Err() != nil:
		return fmt.Errorf("%s: %w", doing, queue.ErrClosed)
	case unreachable(err) && !errors.Is(err, ErrReplicas):
		return fmt.Errorf("%s: %w: %w", doing, queue.ErrUnreachable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// unreachable reports whether the server gave no answer of its own. Then the
// request may have had its effect.
func unreachable(err error) bool {
	for _, e := range []error{
		context.DeadlineExceeded,
		// A stream that isn't there was deleted, and comes back when somebody opens a run.
		jetstream.ErrBucketNotFound,
		jetstream.ErrNoStreamResponse,
		jetstream.ErrStreamNotFound,
		nats.ErrConnectionClosed,
		nats.ErrConnectionDraining,
		nats.ErrConnectionReconnecting,
		nats.ErrDisconnected,
		nats.ErrNoResponders,
		nats.ErrNoServers,
		nats.ErrReconnectBufExceeded,
		nats.ErrStaleConnection,
		nats.ErrTimeout,
		queue.ErrUnreachable,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	// The server's own word for "not now": no leader, shutting down, no resources; and for
	// a batch of which it has only the end, as its stream was deleted and made anew meanwhile.
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.Code == 503 || api.ErrorCode == codeTooManyBatches || api.ErrorCode == codeBatchIncomplete)
}

func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode)
}

// isConflict reports whether a compare-and-swap found something else than it
// expected. The second code is what replicated streams say while another write
// to the key is under way.
func isConflict(err error) bool {
	return hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// isMissing reports whether a stream, and thereby a bucket, isn't there.
func isMissing(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound)
}
