// SPDX-License-Identifier: Apache-2.0

package memqueue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidemill/tidemill/queue"
)

var _ queue.Roster = (*Queue)(nil)

// roster is what workers announced, and who claims what.
type roster struct {
	mu      sync.Mutex
	workers map[string]queue.Presence
	claims  map[string]claim
}

type claim struct {
	holder string
	until  time.Time
}

// look checks that a call may go ahead and takes the roster's lock, which the caller
// gives back.
func (q *Queue) look(ctx context.Context) (*roster, error) {
	select {
	case <-q.closed:
		return nil, queue.ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &q.broker.roster
	r.mu.Lock()
	if r.workers == nil {
		r.workers, r.claims = map[string]queue.Presence{}, map[string]claim{}
	}
	return r, nil
}

// Announce implements [queue.Roster].
func (q *Queue) Announce(ctx context.Context, p queue.Presence) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	r, err := q.look(ctx)
	if err != nil {
		return err
	}
	defer r.mu.Unlock()
	p.At = time.Now()
	r.workers[p.Worker] = p
	return nil
}

// Withdraw implements [queue.Roster].
func (q *Queue) Withdraw(ctx context.Context, worker string) error {
	if err := (queue.Presence{Worker: worker}).Validate(); err != nil {
		return fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	r, err := q.look(ctx)
	if err != nil {
		return err
	}
	defer r.mu.Unlock()
	delete(r.workers, worker)
	return nil
}

// Workers implements [queue.Roster].
func (q *Queue) Workers(ctx context.Context) ([]queue.Presence, error) {
	r, err := q.look(ctx)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	list := []queue.Presence{}
	for name, p := range r.workers {
		if time.Since(p.At) > queue.PresenceTTL {
			delete(r.workers, name)
			continue
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b queue.Presence) int { return cmp.Compare(a.Worker, b.Worker) })
	return list, nil
}

// Claim implements [queue.Roster].
func (q *Queue) Claim(ctx context.Context, what, holder string) (bool, error) {
	if err := queue.CheckClaim(what, holder); err != nil {
		return false, err
	}
	r, err := q.look(ctx)
	if err != nil {
		return false, err
	}
	defer r.mu.Unlock()
	now := time.Now()
	if c, ok := r.claims[what]; ok && c.holder != holder && now.Before(c.until) {
		return false, nil
	}
	r.claims[what] = claim{holder, now.Add(queue.PresenceTTL)}
	return true, nil
}

// Unclaim implements [queue.Roster].
func (q *Queue) Unclaim(ctx context.Context, what, holder string) error {
	if err := queue.CheckClaim(what, holder); err != nil {
		return err
	}
	r, err := q.look(ctx)
	if err != nil {
		return err
	}
	defer r.mu.Unlock()
	if r.claims[what].holder == holder {
		delete(r.claims, what)
	}
	return nil
}
