// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

// What the server has to have: scheduled messages and atomic batches, which are
// level 2, and message ids in those batches, which came a little later.
const (
	apiLevel   = 2
	minVersion = "2.12.1"
)

func (q *Queue) checkServer(ctx context.Context) error {
	var info *jetstream.AccountInfo
	err := q.call(ctx, "ask the NATS server for JetStream", func(ctx context.Context) (err error) {
		info, err = q.js.AccountInfo(ctx)
		return err
	})
	at, version := Redact(q.nc.ConnectedUrl()), q.nc.ConnectedServerVersion()
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
		errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: NATS at %s has no JetStream for this account", ErrNoJetStream, at)
	case err != nil:
		return err
	case info.API.Level < apiLevel || olderThan(version, minVersion):
		return fmt.Errorf("%w: NATS at %s is version %s with JetStream API level %d: want %s or newer, which has scheduled messages and atomic batches with message ids",
			ErrTooOld, at, version, info.API.Level, minVersion)
	}
	return nil
}

// olderThan compares versions number by number; what can't be read is not older.
func olderThan(version, least string) bool {
	have, _, _ := strings.Cut(version, "-")
	parts := strings.Split(have, ".")
	for i, text := range strings.Split(least, ".") {
		want, _ := strconv.Atoi(text)
		if i >= len(parts) {
			return false
		}
		got, err := strconv.Atoi(parts[i])
		if err != nil || got != want {
			return err == nil && got < want
		}
	}
	return false
}

// checkClock compares a time that the server told while we waited for it with ours.
func (q *Queue) checkClock(server, asked, answered time.Time) error {
	skew := max(server.Sub(answered), asked.Sub(server), 0)
	if skew <= q.cfg.MaxClockSkew {
		return nil
	}
	behind := "ahead of"
	if server.Before(asked) {
		behind = "behind"
	}
	return fmt.Errorf("%w: the clock of NATS at %s is %v %s ours: want %v at most",
		ErrClockSkew, Redact(q.nc.ConnectedUrl()), skew.Round(time.Millisecond), behind, q.cfg.MaxClockSkew)
}

// setUp creates what is missing, changes what differs where the server allows that, and
// refuses the rest: another store's streams above all.
func (q *Queue) setUp(ctx context.Context) error {
	for _, want := range q.streams() {
		asked := q.cfg.wall()
		info, err := q.stream(ctx, want)
		if err != nil {
			return err
		}
		if err := q.checkClock(info.TimeStamp, asked, q.cfg.wall()); err != nil {
			return err
		}
		if info, err = q.adapt(ctx, info, want); err != nil {
			return err
		}
		if want.Name == leasesStream {
			q.book.noteBirth(info)
		}
	}
	return nil
}

// adapt makes a stream what the queue needs.
func (q *Queue) adapt(ctx context.Context, info *jetstream.StreamInfo, want jetstream.StreamConfig) (*jetstream.StreamInfo, error) {
	store, ours := info.Config.Metadata[storeKey]
	if ours && store != q.cfg.Store {
		return nil, fmt.Errorf("%w: stream %s serves the store %q, not %q: want a NATS account of its own for each store",
			queue.ErrConflict, want.Name, store, q.cfg.Store)
	}
	list := q.cfg.differences(info.Config, want)
	next, stuck := fixed(info.Config, list)
	if len(stuck) > 0 {
		return nil, fmt.Errorf("%w: stream %s can't be used, nor be changed to what the queue needs: %s",
			queue.ErrConflict, want.Name, listed(stuck))
	}
	if !ours {
		return nil, fmt.Errorf("%w: stream %s is not Tidemill's: want a NATS account without one of that name", queue.ErrConflict, want.Name)
	}
	if len(list) == 0 {
		return info, nil
	}
	err := q.longCall(ctx, "change stream "+want.Name, func(ctx context.Context) error {
		s, err := q.js.UpdateStream(ctx, next)
		if err == nil {
			info = s.CachedInfo()
		}
		return q.asReplicas(err, want)
	})
	return info, err
}

// asReplicas names the reason why a stream can't have its number of replicas.
func (q *Queue) asReplicas(err error, c jetstream.StreamConfig) error {
	if hasCode(err, codeNotClustered, codeNoPeers, codeNoResources) && c.Replicas > 1 {
		return fmt.Errorf("%w: NATS at %s can't keep %d copies of stream %s: %w",
			ErrReplicas, Redact(q.nc.ConnectedUrl()), c.Replicas, c.Name, err)
	}
	return err
}

// stream binds to a stream, or creates it. Who loses the race to create it binds.
func (q *Queue) stream(ctx context.Context, c jetstream.StreamConfig) (info *jetstream.StreamInfo, err error) {
	err = q.longCall(ctx, "set up stream "+c.Name, func(ctx context.Context) error {
		asked := time.Now()
		s, err := q.js.Stream(ctx, c.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			s, err = q.js.CreateStream(ctx, c)
			if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
				s, err = q.js.Stream(ctx, c.Name)
			}
		}
		if err != nil {
			return q.asReplicas(err, c)
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
	if !absent(err) {
		return err
	}
	if q.setUp(ctx) != nil {
		return err
	}
	return do()
}

// absent reports whether an error may mean that a stream is gone.
func absent(err error) bool {
	return isMissing(err) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse)
}
