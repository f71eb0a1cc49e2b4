// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

// starts keeps MaxStartsPerSecond over all workers: one entry per run holds the
// server's time from which the next job may start.
type starts struct {
	q *Queue
}

// start is the right to start one job of a run, taken before the job is asked
// for.
type start struct {
	subject  string
	revision uint64
	was      time.Time // what the entry held before
}

// take moves the run's entry on by one step, or says how long to wait.
func (s *starts) take(ctx context.Context, r queue.Run) (_ *start, wait time.Duration, err error) {
	step := r.Limits.Step()
	subject := "$KV." + startsBucket + "." + r.ID
	for range swapTries {
		var held *start
		err := s.q.repaired(ctx, func() (err error) {
			held, err = s.read(ctx, subject)
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		now := s.q.clock.atLeast()
		if wait := held.was.Sub(now); wait > 0 {
			return nil, min(wait, step), nil
		}
		held.revision, err = s.q.swap(ctx, subject, encodeTime(now.Add(step)), held.revision)
		if err == nil {
			return held, 0, nil
		}
		if !isConflict(err) {
			return nil, 0, err
		}
	}
	return nil, step, nil
}

// giveBack undoes take when there was no job, unless somebody took the next
// start meanwhile.
func (s *starts) giveBack(ctx context.Context, held *start) {
	_, _ = s.q.swap(ctx, held.subject, encodeTime(held.was), held.revision)
}

func (s *starts) read(ctx context.Context, subject string) (*start, error) {
	held := &start{subject: subject}
	err := s.q.call(ctx, "read "+subject, func(ctx context.Context) error {
		m, err := s.q.lastMessage(ctx, startsStream, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		held.revision = m.Sequence
		held.was = decodeTime(m.Data)
		return nil
	})
	return held, err
}

func encodeTime(t time.Time) []byte { return strconv.AppendInt(nil, t.UnixNano(), 10) }

// decodeTime reads what encodeTime wrote; anything else is long ago.
func decodeTime(b []byte) time.Time {
	ns, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
