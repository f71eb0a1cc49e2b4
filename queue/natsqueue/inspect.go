// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/tidemill/tidemill/queue"
)

// ListRuns implements [queue.Inspector]. It reads the bucket, not the board.
func (q *Queue) ListRuns(ctx context.Context) ([]queue.Run, error) {
	runs := []queue.Run{}
	err := q.longCall(ctx, "list the runs", func(ctx context.Context) error {
		runs = runs[:0]
		return q.entries(ctx, runsBucket, ">", func(e jetstream.KeyValueEntry) error {
			var r openRun
			if err := json.Unmarshal(e.Value(), &r); err != nil {
				return fmt.Errorf("run %s in bucket %s: %w", e.Key(), runsBucket, err)
			}
			runs = append(runs, r.Run)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(runs, func(a, b queue.Run) int { return cmp.Compare(a.ID, b.ID) })
	return runs, nil
}

// entries hands out what a bucket has under keys that match, once through. A bucket that
// isn't there has nothing.
func (q *Queue) entries(ctx context.Context, bucket, keys string, do func(jetstream.KeyValueEntry) error) error {
	kv, err := q.js.KeyValue(ctx, bucket)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	w, err := kv.Watch(ctx, keys, jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer drain(w)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.Updates():
			if e == nil || !ok {
				return nil
			}
			if err := do(e); err != nil {
				return err
			}
		}
	}
}

// Stats implements [queue.Inspector].
func (q *Queue) Stats(ctx context.Context, run string) (queue.Stats, error) {
	var out queue.Stats
	r, err := q.getRun(ctx, run)
	if err != nil {
		return out, err
	}
	err = q.longCall(ctx, "stats of run "+run, func(ctx context.Context) error {
		c, err := q.js.Consumer(ctx, trialsStream, run)
		switch {
		case errors.Is(err, jetstream.ErrConsumerNotFound), isMissing(err):
			// Nothing is in flight that the server knows of.
			out.Pending, err = q.countMessages(ctx, trialsStream, runFilter(waitingSpace, r.Run))
		case err == nil:
			info := c.CachedInfo()
			out.Pending, out.InFlight = int(info.NumPending), info.NumAckPending
		}
		if err != nil {
			return err
		}
		out.Delayed, err = q.countMessages(ctx, trialsStream, runFilter(delayedSpace, r.Run))
		if err != nil {
			return err
		}
		out.Dead, err = q.countMessages(ctx, deadStream, deadSubject(run, ">"))
		return err
	})
	return out, err
}

// countMessages counts by subject, which the server lists one by one: use it
// where there are few.
func (q *Queue) countMessages(ctx context.Context, stream, filter string) (n int, err error) {
	s, err := q.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return 0, err
	}
	for _, count := range info.State.Subjects {
		n += int(count)
	}
	return n, nil
}

// deadBatch is how many dead letters are read at once.
const deadBatch = 256

// DeadLetters implements [queue.Inspector].
func (q *Queue) DeadLetters(ctx context.Context, run string, limit int) ([]queue.DeadLetter, error) {
	var letters []queue.DeadLetter
	for next := uint64(1); ; {
		want := deadBatch
		if limit > 0 {
			want = min(want, limit-len(letters))
		}
		var got []queue.DeadLetter
		err := q.longCall(ctx, "read dead letters of run "+run, func(ctx context.Context) (err error) {
			got, next, err = q.deadLetters(ctx, run, next, want)
			return err
		})
		if err != nil {
			return nil, err
		}
		letters = append(letters, got...)
		if len(got) < want || len(letters) == limit {
			return letters, nil
		}
	}
}

// deadLetters reads some letters from a number on, and says where to go on.
func (q *Queue) deadLetters(ctx context.Context, run string, from uint64, n int) (letters []queue.DeadLetter, next uint64, err error) {
	found, err := jetstreamext.GetBatch(ctx, q.js, deadStream, n,
		jetstreamext.GetBatchSubject(deadSubject(run, ">")), jetstreamext.GetBatchSeq(from))
	if err != nil {
		return nil, from, err
	}
	next = from
	for m, err := range found {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			break
		}
		if err != nil {
			return nil, from, err
		}
		id, err := idOf(m.Header.Get)
		if err != nil {
			return nil, from, fmt.Errorf("message %d of stream %s: %w", m.Sequence, deadStream, err)
		}
		reason, err := strconv.Unquote(m.Header.Get(reasonHeader))
		if err != nil {
			reason = m.Header.Get(reasonHeader)
		}
		letters = append(letters, queue.DeadLetter{
			Job: queue.Job{ID: id, Run: run, Body: m.Data}, Reason: reason, At: m.Time,
		})
		next = m.Sequence + 1
	}
	return letters, next, nil
}
