// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

var _ queue.Roster = (*Queue)(nil)

// The roster is a bucket in memory whose entries go by themselves when nobody renews them:
// workers below worker., claims below claim.
const (
	workersBucket = "tidemill-workers"
	workersStream = "KV_" + workersBucket
)

// rosterBucket is the roster's stream.
func rosterBucket() jetstream.StreamConfig {
	return bucket(workersBucket, func(c *jetstream.StreamConfig) {
		c.Storage = jetstream.MemoryStorage
		c.MaxAge = queue.PresenceTTL
		c.AllowDirect = true // Workers reads many
	})
}

func rosterSubject(kind, name string) string { return "$KV." + workersBucket + "." + kind + "." + name }

// Announce implements [queue.Roster].
func (q *Queue) Announce(ctx context.Context, p queue.Presence) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	value, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return q.repaired(ctx, func() error {
		return q.call(ctx, "announce worker "+p.Worker, func(ctx context.Context) error {
			_, err := q.js.Publish(ctx, rosterSubject("worker", p.Worker), value)
			return err
		})
	})
}

// Withdraw implements [queue.Roster].
func (q *Queue) Withdraw(ctx context.Context, worker string) error {
	if err := (queue.Presence{Worker: worker}).Validate(); err != nil {
		return fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	return q.forget(ctx, rosterSubject("worker", worker))
}

// forget removes what is on the roster under a subject.
func (q *Queue) forget(ctx context.Context, subject string) error {
	err := q.call(ctx, "remove "+subject, func(ctx context.Context) error {
		_, err := q.purgeSubject(ctx, workersStream, subject)
		return err
	})
	if isMissing(err) {
		return nil
	}
	return err
}

// Workers implements [queue.Roster].
func (q *Queue) Workers(ctx context.Context) ([]queue.Presence, error) {
	workers := []queue.Presence{}
	err := q.longCall(ctx, "read the roster", func(ctx context.Context) error {
		workers = workers[:0]
		return q.entries(ctx, workersBucket, "worker.>", func(e jetstream.KeyValueEntry) error {
			var p queue.Presence
			if err := json.Unmarshal(e.Value(), &p); err != nil || p.Worker != strings.TrimPrefix(e.Key(), "worker.") {
				return nil // of another version, which has its own readers
			}
			p.At = e.Created()
			workers = append(workers, p)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(workers, func(a, b queue.Presence) int { return cmp.Compare(a.Worker, b.Worker) })
	return workers, nil
}

// Claim implements [queue.Roster]. An entry that is there is somebody's, until the server
// lets it go.
func (q *Queue) Claim(ctx context.Context, what, holder string) (held bool, err error) {
	if err := queue.CheckClaim(what, holder); err != nil {
		return false, err
	}
	subject := rosterSubject("claim", what)
	err = q.repaired(ctx, func() error {
		owner, revision, err := q.claimed(ctx, subject)
		if err != nil || owner != "" && owner != holder {
			return err
		}
		_, err = q.swap(ctx, subject, []byte(holder), revision)
		if isConflict(err) {
			return nil // somebody was faster
		}
		held = err == nil
		return err
	})
	return held, err
}

// claimed returns who has a claim, "" for nobody.
func (q *Queue) claimed(ctx context.Context, subject string) (holder string, revision uint64, err error) {
	err = q.call(ctx, "read "+subject, func(ctx context.Context) error {
		m, err := q.lastMessage(ctx, workersStream, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err == nil {
			holder, revision = string(m.Data), m.Sequence
		}
		return err
	})
	return holder, revision, err
}

// Unclaim implements [queue.Roster].
func (q *Queue) Unclaim(ctx context.Context, what, holder string) error {
	if err := queue.CheckClaim(what, holder); err != nil {
		return err
	}
	subject := rosterSubject("claim", what)
	owner, _, err := q.claimed(ctx, subject)
	if err != nil || owner != holder {
		if isMissing(err) {
			return nil
		}
		return err
	}
	return q.forget(ctx, subject)
}
