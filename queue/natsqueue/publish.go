// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/tidemill/tidemill/queue"
)

// Publish implements [queue.Publisher]. Jobs go in by atomic batches.
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
	for b := range q.prepare(ctx, r.Run, jobs) {
		stored, err := q.publishBatch(ctx, r.Run, b)
		total.Stored += stored
		if err != nil {
			return total, err
		}
		total.Skipped += b.named - stored
		if stored > 0 {
			q.announce(r.Run)
		}
	}
	return total, ctx.Err()
}

// batch is what goes in at once.
type batch struct {
	named    int // jobs, before repeated trials were dropped
	jobs     []queue.Job
	messages []*nats.Msg
}

// prepare makes each batch while the server stores the one before it.
func (q *Queue) prepare(ctx context.Context, r queue.Run, jobs []queue.Job) iter.Seq[batch] {
	return func(yield func(batch) bool) {
		ctx, cancel := context.WithCancel(ctx)
		ready := make(chan batch, 1)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		wg.Go(func() {
			defer close(ready)
			for named := range slices.Chunk(jobs, q.cfg.BatchSize) {
				fresh := firstOfTrial(named)
				select {
				case ready <- batch{named: len(named), jobs: fresh, messages: messages(r, fresh)}:
				case <-ctx.Done():
					return
				}
			}
		})
		for b := range ready {
			if !yield(b) {
				return
			}
		}
	}
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

// message is a job on its way in. It is refused if the trial waits or is in
// flight. One header could have the server refuse delayed ones too; it would be
// a fifth of each message on disk.
func message(r queue.Run, j queue.Job) *nats.Msg {
	return &nats.Msg{
		Subject: jobSubject(waitingSpace, r, j.Trial),
		Data:    j.Body,
		Header: nats.Header{
			jetstream.MsgIDHeader:               {messageID(r.ID, j.ID)},
			jetstream.ExpectedLastSubjSeqHeader: {"0"},
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

// publishBatch stores what is new of a batch: whole if all of it is, then without
// the trials that are live, and at last job by job, for an id that is known but
// not live is told by nothing else.
func (q *Queue) publishBatch(ctx context.Context, r queue.Run, b batch) (stored int, err error) {
	jobs := b.jobs
	refused, err := q.anyDelayed(ctx, r)
	if err == nil && !refused {
		refused, err = q.atomically(ctx, r, b.messages)
	}
	if err != nil {
		return 0, err
	}
	if !refused {
		return len(jobs), nil
	}
	live, err := q.liveTrials(ctx, r, jobs)
	if err != nil {
		return 0, err
	}
	jobs = slices.DeleteFunc(jobs, func(j queue.Job) bool { return live[j.Trial] })
	if len(jobs) == 0 {
		return 0, nil
	}
	refused, err = q.atomically(ctx, r, messages(r, jobs))
	if err != nil {
		return 0, err
	}
	if !refused {
		return len(jobs), nil
	}
	return q.oneByOne(ctx, r, jobs)
}

// anyDelayed reports whether the run has a delayed job at all, which most have
// not. One that becomes delayed just now may slip through; its lease and the
// commit absorb that.
func (q *Queue) anyDelayed(ctx context.Context, r queue.Run) (any bool, err error) {
	err = q.repaired(ctx, func() error {
		return q.call(ctx, "look for delayed jobs of run "+r.ID, func(ctx context.Context) error {
			_, err := q.getMessage(ctx, trialsStream, struct {
				Seq  uint64 `json:"seq"`
				Next string `json:"next_by_subj"`
			}{1, runFilter(delayedSpace, r)})
			any = err == nil
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return nil
			}
			return err
		})
	})
	return any, err
}

// atomically stores all of the messages or none, and waits for nothing but the
// last one's answer. It is refused if the server knows
// any id or has any trial.
func (q *Queue) atomically(ctx context.Context, r queue.Run, batch []*nats.Msg) (refused bool, err error) {
	err = q.repaired(ctx, func() error {
		return q.longCall(ctx, "publish to run "+r.ID, func(ctx context.Context) error {
			_, err := jetstreamext.PublishMsgBatch(ctx, q.js, batch, jetstreamext.BatchFlowControl{})
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
