// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

// storeKey is the metadata of each stream that names the store it serves.
const storeKey = "tidemill-store"

// apiLevel is what the server has to have: atomic batches with message ids and
// schedules.
const apiLevel = 2

// markerTTL is how long the runs bucket tells watchers of a closed run.
const markerTTL = 24 * time.Hour

func (q *Queue) checkServer(ctx context.Context) error {
	var info *jetstream.AccountInfo
	err := q.call(ctx, "ask the NATS server for JetStream", func(ctx context.Context) (err error) {
		info, err = q.js.AccountInfo(ctx)
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("the NATS server at %s has JetStream disabled for this account: enable it in its configuration: %w",
			redact(q.nc.ConnectedUrl()), err)
	case err != nil:
		return err
	case info.API.Level < apiLevel:
		return fmt.Errorf("the NATS server at %s is version %s with JetStream API level %d: want level %d, which is version 2.12.1 or newer",
			redact(q.nc.ConnectedUrl()), q.nc.ConnectedServerVersion(), info.API.Level, apiLevel)
	}
	return nil
}

// firstSeq makes the numbers of a stream start above those of all streams that
// had its name before.
func firstSeq() uint64 { return uint64(time.Now().UnixMicro()) }

// streams are what the queue needs on the server.
func (q *Queue) streams() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{
		{
			Name:      trialsStream,
			Subjects:  []string{"tidemill." + waitingSpace + ".>", "tidemill." + delayedSpace + ".>"},
			Retention: jetstream.WorkQueuePolicy,
			// No limits: with them the oldest jobs would vanish without a word, and
			// schedules forbid to refuse new ones instead.
			Discard:            jetstream.DiscardOld,
			Duplicates:         q.cfg.DedupeWindow,
			AllowDirect:        true,
			AllowMsgSchedules:  true,
			AllowAtomicPublish: true,
		},
		{
			Name:        deadStream,
			Subjects:    []string{"tidemill.dead.>"},
			AllowDirect: true,
		},
		bucket(runsBucket, func(c *jetstream.StreamConfig) {
			c.AllowDirect = true
			c.AllowMsgTTL = true
			c.SubjectDeleteMarkerTTL = markerTTL
		}),
		bucket(leasesBucket, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }),
		bucket(startsBucket, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }),
	}
}

// bucket is a key-value bucket as nats.go makes it, but that it is read from its
// leader only, unless change says otherwise.
func bucket(name string, change func(*jetstream.StreamConfig)) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              "KV_" + name,
		Subjects:          []string{"$KV." + name + ".>"},
		MaxMsgsPerSubject: 1,
		AllowRollup:       true,
		DenyDelete:        true,
		Discard:           jetstream.DiscardNew,
	}
	change(&c)
	return c
}

// setUp creates what is missing and refuses what serves another store.
func (q *Queue) setUp(ctx context.Context) error {
	for _, c := range q.streams() {
		c.FirstSeq = firstSeq()
		c.Replicas = q.cfg.Replicas
		c.Metadata = map[string]string{storeKey: q.cfg.Store}
		info, err := q.stream(ctx, c)
		if err != nil {
			return err
		}
		if got := info.Config.Metadata[storeKey]; got != q.cfg.Store {
			return fmt.Errorf("%w: stream %s serves the store %q, not %q: want a NATS account of its own for each store",
				queue.ErrConflict, c.Name, got, q.cfg.Store)
		}
		switch c.Name {
		case leasesStream:
			q.book.noteBirth(info)
		case trialsStream:
			if got := info.Config; got.Retention != c.Retention || !got.AllowMsgSchedules || !got.AllowAtomicPublish {
				return fmt.Errorf("%w: stream %s is no work queue with schedules and atomic batches: want one that Tidemill created",
					queue.ErrConflict, c.Name)
			}
		}
	}
	return nil
}

// stream binds to a stream, or creates it. Who loses the race to create it binds.
func (q *Queue) stream(ctx context.Context, c jetstream.StreamConfig) (info *jetstream.StreamInfo, err error) {
	err = q.call(ctx, "set up stream "+c.Name, func(ctx context.Context) error {
		asked := time.Now()
		s, err := q.js.Stream(ctx, c.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			s, err = q.js.CreateStream(ctx, c)
			if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
				s, err = q.js.Stream(ctx, c.Name)
			}
		}
		if err != nil {
			return err
		}
		info = s.CachedInfo()
		q.clock.set(info.TimeStamp, asked)
		return nil
	})
	return info, err
}

// repaired calls do, and once more after setting up what was missing on the
// server: an operator or a disaster may have deleted it. Nobody answers for a
// stream that isn't there, so that no answer is looked into as well.
func (q *Queue) repaired(ctx context.Context, do func() error) error {
	err := do()
	if !isMissing(err) && !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, jetstream.ErrNoStreamResponse) {
		return err
	}
	if q.setUp(ctx) != nil {
		return err
	}
	return do()
}
