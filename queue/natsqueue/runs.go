// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

// swapTries bounds how often a compare-and-swap is repeated when others are
// faster.
const swapTries = 16

// OpenRun implements [queue.Runs]. The bucket is written first and the consumer
// made after it: what a crash leaves undone in between, the first worker that
// looks for the consumer does.
func (q *Queue) OpenRun(ctx context.Context, r queue.Run) error {
	r = r.WithDefaults()
	if err := r.Validate(); err != nil {
		return fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	if err := q.setUp(ctx); err != nil {
		return err // a disaster may have left nothing
	}
	if err := q.dropForeignConsumer(ctx, r); err != nil {
		return err
	}
	now, err := q.changeRun(ctx, r.ID, func(old *openRun) (openRun, error) {
		if old == nil {
			return openRun{Run: r}, nil
		}
		if old.Pool != r.Pool || old.Class != r.Class {
			return openRun{}, fmt.Errorf("%w: run %s is open in pool %s with class %s, not in pool %s with class %s",
				queue.ErrConflict, r.ID, old.Pool, old.Class, r.Pool, r.Class)
		}
		return openRun{Run: r, Purged: old.Purged}, nil
	})
	if err != nil {
		return err
	}
	if err := q.setConsumer(ctx, now); err != nil {
		return err
	}
	q.announce(r)
	return nil
}

// PauseRun implements [queue.Runs].
func (q *Queue) PauseRun(ctx context.Context, run string) error {
	return q.setPaused(ctx, run, true)
}

// ResumeRun implements [queue.Runs].
func (q *Queue) ResumeRun(ctx context.Context, run string) error {
	return q.setPaused(ctx, run, false)
}

// setPaused has the workers told by the bucket, and the server enforce it for
// those who have not heard yet.
func (q *Queue) setPaused(ctx context.Context, run string, paused bool) error {
	now, err := q.changeRun(ctx, run, func(old *openRun) (openRun, error) {
		if old == nil {
			return openRun{}, unknown(run)
		}
		old.Paused = paused
		return *old, nil
	})
	if err != nil {
		return err
	}
	if err := q.setConsumer(ctx, now); err != nil {
		return err
	}
	if !paused {
		q.announce(now.Run)
	}
	return nil
}

// PurgeRun implements [queue.Runs]. The order matters: whoever still got a job
// before the purge learns from the bucket that it is over, and who takes the
// lease after that looks whether the job is there.
func (q *Queue) PurgeRun(ctx context.Context, run string) (int, error) {
	r, err := q.getRun(ctx, run)
	if err != nil {
		return 0, err
	}
	waiting, err := q.purgeJobs(ctx, r)
	if err != nil {
		return 0, err
	}
	last, err := q.lastSeq(ctx, trialsStream) // 0 where it is missing: what comes after it has larger numbers
	if err != nil {
		return 0, err
	}
	_, err = q.changeRun(ctx, run, func(old *openRun) (openRun, error) {
		if old == nil {
			return openRun{}, unknown(run)
		}
		old.Purged = max(old.Purged, last)
		return *old, nil
	})
	if err != nil {
		return 0, err
	}
	return waiting, q.purgeLeases(ctx, run)
}

// purgeJobs drops the run's messages, and returns how many of them were not in
// flight, which may be off by those that moved meanwhile.
func (q *Queue) purgeJobs(ctx context.Context, r openRun) (waiting int, err error) {
	err = q.call(ctx, "purge run "+r.ID, func(ctx context.Context) error {
		var flying int
		c, err := q.js.Consumer(ctx, trialsStream, r.ID)
		switch {
		case err == nil:
			flying = c.CachedInfo().NumAckPending
		case isMissing(err):
			return nil // nothing is in it
		case !errors.Is(err, jetstream.ErrConsumerNotFound):
			return err
		}
		purged, err := q.purgeSubject(ctx, trialsStream, runFilter("*", r.Run))
		waiting = max(0, purged-flying)
		return err
	})
	return waiting, err
}

func (q *Queue) purgeLeases(ctx context.Context, run string) error {
	return q.call(ctx, "purge the leases of run "+run, func(ctx context.Context) error {
		_, err := q.purgeSubject(ctx, leasesStream, leaseFilter(run))
		if isMissing(err) {
			return nil
		}
		return err
	})
}

func unknown(run string) error { return fmt.Errorf("run %s: %w", run, queue.ErrUnknownRun) }

// getRun reads a run from the bucket: the board may lag behind.
func (q *Queue) getRun(ctx context.Context, run string) (openRun, error) {
	r, _, err := q.readRun(ctx, run)
	return r, err
}

func (q *Queue) readRun(ctx context.Context, run string) (r openRun, revision uint64, err error) {
	if err := (queue.Run{ID: run, Class: "any"}).WithDefaults().Validate(); err != nil {
		return r, 0, unknown(run) // no such run can be open, and it would be no key
	}
	var e jetstream.RawStreamMsg
	err = q.call(ctx, "read run "+run, func(ctx context.Context) error {
		m, err := q.lastMessage(ctx, "KV_"+runsBucket, "$KV."+runsBucket+"."+run)
		if err == nil {
			e = *m
		}
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound), isMissing(err):
		return r, 0, unknown(run)
	case err != nil:
		return r, 0, err
	case e.Header.Get("KV-Operation") != "" || e.Header.Get(jetstream.MarkerReasonHeader) != "": // of a closed run
		return r, e.Sequence, unknown(run)
	}
	if err := json.Unmarshal(e.Data, &r); err != nil {
		return r, 0, fmt.Errorf("run %s in bucket %s: %w", run, runsBucket, err)
	}
	if r.Closing {
		return r, e.Sequence, unknown(run)
	}
	return r, e.Sequence, nil
}

// changeRun swaps the run's entry for what change makes of it; change gets nil
// if the run is not open.
func (q *Queue) changeRun(ctx context.Context, run string, change func(old *openRun) (openRun, error)) (openRun, error) {
	for range swapTries {
		old, revision, err := q.readRun(ctx, run)
		var next openRun
		switch {
		case err == nil:
			next, err = change(&old)
		case errors.Is(err, queue.ErrUnknownRun):
			next, err = change(nil)
		}
		if err != nil {
			return openRun{}, err
		}
		value, err := json.Marshal(next)
		if err != nil {
			return openRun{}, err
		}
		_, err = q.swap(ctx, "$KV."+runsBucket+"."+run, value, revision)
		if err == nil {
			return next, nil
		}
		if !isConflict(err) {
			return openRun{}, err
		}
	}
	return openRun{}, fmt.Errorf("change run %s: others were faster %d times: %w", run, swapTries, queue.ErrUnreachable)
}
