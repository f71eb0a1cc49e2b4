// SPDX-License-Identifier: Apache-2.0

package memqueue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// ListRuns implements [queue.Inspector].
func (q *Queue) ListRuns(ctx context.Context) ([]queue.Run, error) {
	if err := q.enter(ctx); err != nil {
		return nil, err
	}
	defer q.broker.mu.Unlock()
	runs := make([]queue.Run, 0, len(q.broker.runs))
	for _, r := range q.broker.runs {
		runs = append(runs, r.Run)
	}
	slices.SortFunc(runs, func(a, b queue.Run) int { return cmp.Compare(a.ID, b.ID) })
	return runs, nil
}

// Stats implements [queue.Inspector].
func (q *Queue) Stats(ctx context.Context, run string) (queue.Stats, error) {
	if err := q.enter(ctx); err != nil {
		return queue.Stats{}, err
	}
	defer q.broker.mu.Unlock()
	r, err := q.broker.run(run)
	if err != nil {
		return queue.Stats{}, err
	}
	r.advance(q.broker, time.Now())
	return queue.Stats{
		Pending:  r.pending.Len(),
		Delayed:  r.timed.Len() - r.leased,
		InFlight: r.leased,
		Dead:     len(q.broker.dead[run]),
	}, nil
}

// DeadLetters implements [queue.Inspector].
func (q *Queue) DeadLetters(ctx context.Context, run string, limit int) ([]queue.DeadLetter, error) {
	if err := q.enter(ctx); err != nil {
		return nil, err
	}
	defer q.broker.mu.Unlock()
	letters := q.broker.dead[run]
	if limit > 0 {
		letters = letters[:min(limit, len(letters))]
	}
	return slices.Clone(letters), nil
}

// Holder implements [queue.Inspector].
func (q *Queue) Holder(ctx context.Context, run, trial string) (string, error) {
	if err := q.enter(ctx); err != nil {
		return "", err
	}
	defer q.broker.mu.Unlock()
	r, ok := q.broker.runs[run]
	if !ok {
		return "", nil
	}
	r.advance(q.broker, time.Now())
	e, ok := r.live[trial]
	if !ok || e.state != leased {
		return "", nil
	}
	return e.holder.worker, nil
}
