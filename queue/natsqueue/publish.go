// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/tidemill/tidemill/queue"
)

// Publish implements [queue.Publisher]. Jobs go in by atomic batches, each of
// which is all new or refused whole. A batch that was refused is tried again
// without the trials that are live, and then job by job.
func (q *Queue) Publish(ctx context.Context, run string, jobs []queue.Job) (queue.Published, error) {
	var total queue.Published
	jobs, err := queue.CheckJobs(run, jobs)
	if err != nil {
		return total, err
	}
	r, err := q.getRun(ctx, run)
	if err != nil {
		return total, err
	}
	for batch := range slices.Chunk(jobs, q.cfg.BatchSize) {
		fresh := firstOfTrial(batch)
		stored, err := q.publishBatch(ctx, r.Run, fresh)
		total.Stored += stored
		if err != nil {
			return total, err
		}
		total.Skipped += len(batch) - stored
		if stored > 0 {
			q.announce(r.Run)
		}
	}
	return total, nil
}

// firstOfTrial drops the jobs of trials that were named before.
func firstOfTrial(jobs []queue.Job) []queue.Job {
	seen := make(map[string]bool, len(jobs))
	return slices.DeleteFunc(slices.Clone(jobs), func(j queue.Job) bool {
		again := seen[j.Trial]
		seen[j.Trial] = true
		return again
	})
}

// message is a job on its way in. It is refused if the trial is live, waiting or
// delayed.
func message(r queue.Run, j queue.Job) *nats.Msg {
	return &nats.Msg{
		Subject: jobSubject(waitingSpace, r, j.Trial),
		Data:    j.Body,
		Header: nats.Header{
			jetstream.MsgIDHeader:                   {messageID(r.ID, j.ID)},
			jetstream.ExpectedLastSubjSeqHeader:     {"0"},
			jetstream.ExpectedLastSubjSeqSubjHeader: {anywhere(r, j.Trial)},
		},
	}
}

func messages(r queue.Run, jobs []queue.Job) []*nats.Msg {
	out := make([]*nats.Msg, len(jobs))
	for i, j := range jobs {
		out[i] = message(r, j)
	}
	return out
}

func (q *Queue) publishBatch(ctx context.Context, r queue.Run, jobs []queue.Job) (stored int, err error) {
	refused, err := q.atomically(ctx, r, jobs)
	if err != nil || !refused {
		return len(jobs), err
	}
	live, err := q.liveTrials(ctx, r, jobs)
	if err != nil {
		return 0, err
	}
	if len(live) > 0 {
		jobs = slices.DeleteFunc(jobs, func(j queue.Job) bool { return live[j.Trial] })
		if len(jobs) == 0 {
			return 0, nil
		}
		refused, err = q.atomically(ctx, r, jobs)
		if err != nil || !refused {
			return len(jobs), err
		}
	}
	return q.oneByOne(ctx, r, jobs)
}

// atomically stores all of the jobs or none. It is refused if the server knows
// any id or has any trial.
func (q *Queue) atomically(ctx context.Context, r queue.Run, jobs []queue.Job) (refused bool, err error) {
	err = q.repaired(ctx, func() error {
		return q.longCall(ctx, "publish to run "+r.ID, func(ctx context.Context) error {
			_, err := jetstreamext.PublishMsgBatch(ctx, q.js, messages(r, jobs))
			return err
		})
	})
	if isConflict(err) || hasCode(err, codeBatchHasDuplicate) {
		return true, nil
	}
	return false, err
}

// liveTrials returns which of the jobs' trials wait, are delayed or in flight.
func (q *Queue) liveTrials(ctx context.Context, r queue.Run, jobs []queue.Job) (map[string]bool, error) {
	subjects := make([]string, len(jobs))
	for i, j := range jobs {
		subjects[i] = anywhere(r, j.Trial)
	}
	live := map[string]bool{}
	err := q.longCall(ctx, "publish to run "+r.ID, func(ctx context.Context) error {
		found, err := jetstreamext.GetLastMsgsFor(ctx, q.js, trialsStream, subjects)
		if err != nil {
			return err
		}
		for m, err := range found {
			if errors.Is(err, jetstreamext.ErrNoMessages) {
				return nil
			}
			if err != nil {
				return err
			}
			live[trialOf(m.Subject)] = true
		}
		return nil
	})
	return live, err
}

// oneByOne stores what can be stored, in order and without waiting for each.
func (q *Queue) oneByOne(ctx context.Context, r queue.Run, jobs []queue.Job) (stored int, err error) {
	err = q.longCall(ctx, "publish to run "+r.ID, func(ctx context.Context) error {
		stored = 0
		acks := make([]jetstream.PubAckFuture, len(jobs))
		for i, m := range messages(r, jobs) {
			ack, err := q.js.PublishMsgAsync(m)
			if err != nil {
				return err
			}
			acks[i] = ack
		}
		for _, ack := range acks {
			select {
			case a := <-ack.Ok():
				if !a.Duplicate {
					stored++
				}
			case err := <-ack.Err():
				if !isConflict(err) {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return stored, err
}
