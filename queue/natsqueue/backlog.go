// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/tidemill/tidemill/queue"
)

// Backlog implements [queue.Inspector]. It is one listing of the consumers, one of the
// runs, and one look at the delayed jobs, whatever there is of each. A run without its
// consumer gets it back: with no worker left nobody else would notice.
func (q *Queue) Backlog(ctx context.Context) ([]queue.Demand, error) {
	runs, err := q.ListRuns(ctx)
	if err != nil {
		return nil, err
	}
	jobs, err := q.countByConsumer(ctx)
	if err != nil {
		return nil, err
	}
	soon, err := q.dueSoon(ctx)
	if err != nil {
		return nil, err
	}
	demands := queue.Demands{}
	for _, r := range runs {
		n, ok := jobs[r.ID]
		if !ok {
			if err := q.restoreConsumer(ctx, r.ID); err != nil {
				return nil, err
			}
			s, err := q.Stats(ctx, r.ID)
			if err != nil && !errors.Is(err, queue.ErrUnknownRun) { // closed just now
				return nil, err
			}
			n = queue.Jobs{Waiting: s.Pending, InFlight: s.InFlight}
		}
		n.DueSoon = soon[r.ID]
		demands.Add(r, n)
	}
	return demands.List(), nil
}

// countByConsumer returns what waits and what is in flight, by run.
func (q *Queue) countByConsumer(ctx context.Context) (jobs map[string]queue.Jobs, err error) {
	err = q.longCall(ctx, "list the consumers", func(ctx context.Context) error {
		jobs = map[string]queue.Jobs{}
		s, err := q.js.Stream(ctx, trialsStream)
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		list := s.ListConsumers(ctx)
		for c := range list.Info() {
			jobs[c.Name] = queue.Jobs{Waiting: int(c.NumPending), InFlight: c.NumAckPending}
		}
		return list.Err()
	})
	return jobs, err
}

const (
	// delayedBatch is how many delayed jobs are looked at with one request.
	delayedBatch = 1000
	// delayedLooks bounds the requests. What is behind them is taken to be like them.
	delayedLooks = 4
)

// dueSoon counts the delayed jobs that are due soon, by run.
func (q *Queue) dueSoon(ctx context.Context) (map[string]int, error) {
	soon, looked, behind := map[string]int{}, 0, 0
	for next, look := uint64(1), 0; look < delayedLooks; look++ {
		var part map[string]int
		var n int
		err := q.longCall(ctx, "look at the delayed jobs", func(ctx context.Context) (err error) {
			part, n, behind, next, err = q.delayedFrom(ctx, next)
			return err
		})
		if err != nil {
			return nil, err
		}
		for run, jobs := range part {
			soon[run] += jobs
		}
		if looked += n; behind == 0 || n == 0 {
			return soon, nil
		}
	}
	for run := range soon {
		soon[run] += soon[run] * behind / looked
	}
	return soon, nil
}

// delayedFrom reads some delayed jobs from a number on: how many of each run are due
// soon, how many were read, how many are behind them, and where they begin.
func (q *Queue) delayedFrom(ctx context.Context, from uint64) (soon map[string]int, n, behind int, next uint64, err error) {
	soon, next = map[string]int{}, from
	found, err := jetstreamext.GetBatch(ctx, q.js, trialsStream, delayedBatch,
		jetstreamext.GetBatchSubject("tidemill."+delayedSpace+".>"), jetstreamext.GetBatchSeq(from))
	if err != nil {
		return nil, 0, 0, from, ignoreMissing(err)
	}
	limit := q.clock.atLeast().Add(queue.DueSoon)
	for m, err := range found {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			break
		}
		if err != nil {
			return nil, 0, 0, from, ignoreMissing(err)
		}
		n++
		next = m.Sequence + 1
		behind, _ = strconv.Atoi(m.Header.Get("Nats-Num-Pending"))
		at, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(m.Header.Get(jetstream.ScheduleHeader), "@at "))
		if err == nil && at.Before(limit) {
			soon[runOf(m.Subject)]++
		}
	}
	return soon, n, behind, next, nil
}

// ignoreMissing drops an error that says that the stream isn't there: nothing is in it.
func ignoreMissing(err error) error {
	if absent(err) {
		return nil
	}
	return err
}
