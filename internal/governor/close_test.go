// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// work does so many trials as a worker would.
func (l *lab) work(n int) {
	l.t.Helper()
	for range n {
		lease, err := l.queue.Lease(l.t.Context(), queue.Request{Worker: "w", Offers: []string{"scripted"}, Nonce: bundle.NewNonce()})
		if err != nil {
			l.t.Fatal(err)
		}
		j := lease.Job()
		c := bundle.Commit{
			TrialID: j.Trial, Epoch: j.Epoch, Attempt: 1, Nonce: "n",
			Outcome: bundle.Outcome{Status: bundle.Errored, TerminationReason: bundle.ReasonAPIError, FailureClass: bundle.ProviderFailure},
		}
		if _, _, err := bundle.WriteCommit(l.t.Context(), l.store, l.keys, c); err != nil {
			l.t.Fatal(err)
		}
		if err := lease.Done(l.t.Context()); err != nil {
			l.t.Fatal(err)
		}
	}
}

// gone wants no run in the queue.
func (l *lab) gone() {
	l.t.Helper()
	if runs, err := l.queue.ListRuns(l.t.Context()); err != nil || len(runs) > 0 {
		l.t.Fatalf("in the queue: %+v, %v", runs, err)
	}
}

func (l *lab) retry() {
	l.t.Helper()
	order := producer.Order{Kind: bundle.ControlRetry, By: "ada", Select: producer.Selection{Classes: []string{"provider"}}}
	if a, err := l.producer().Give(l.t.Context(), l.rec, order); err != nil || a.Enqueued != 4 {
		l.t.Fatalf("%+v, %v", a, err)
	}
}

func TestCompleteRunsLeaveTheQueue(t *testing.T) {
	l := newLab(t, manifest.Limits{})
	g := l.governor("one")
	l.work(3)
	l.look(g)
	if _, live := l.inQueue(); live != 1 {
		t.Fatalf("%d live", live)
	}
	l.work(1)
	l.look(g)
	l.gone()
	l.retry()
	l.look(g)
	if _, live := l.inQueue(); live != 4 {
		t.Fatalf("%d live after the retry", live)
	}
	l.work(4)
	l.look(g)
	l.gone()
	// One that ends closes what was done since.
	l.retry()
	l.look(g)
	l.work(4)
	g.resign(t.Context())
	l.gone()
}

// A run of which the queue has nothing stays while trials of it have no commit, and is not
// looked at all the time.
func TestIncompleteRunsStay(t *testing.T) {
	l := newLab(t, manifest.Limits{})
	g := l.governor("one")
	lists := 0
	g.Queue = countingQueue{l.queue, &lists}
	if _, err := l.queue.PurgeRun(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		l.look(g)
		l.clock = l.clock.Add(g.Every)
	}
	if _, live := l.inQueue(); live != 0 || lists < 3 || lists > 10 {
		t.Errorf("%d live; looked %d times", live, lists)
	}
}

type countingQueue struct {
	Queue
	n *int
}

func (q countingQueue) CloseRun(ctx context.Context, run string, settled func(context.Context) (bool, error)) (bool, error) {
	*q.n++
	return q.Queue.CloseRun(ctx, run, settled)
}

// A retry that begins while the run is being closed loses nothing.
func TestRetryWhileARunIsClosed(t *testing.T) {
	l := newLab(t, manifest.Limits{})
	g := l.governor("one")
	l.work(4)
	g.Queue = tornQueue{l.queue, l}
	l.look(g)
	if _, live := l.inQueue(); live != 4 {
		t.Fatalf("%d live", live)
	}
}

// tornQueue has somebody retry after the store was looked at, and before the run is closed.
type tornQueue struct {
	Queue
	l *lab
}

func (q tornQueue) CloseRun(ctx context.Context, run string, settled func(context.Context) (bool, error)) (bool, error) {
	return q.Queue.CloseRun(ctx, run, func(ctx context.Context) (bool, error) {
		ok, err := settled(ctx)
		if !ok || err != nil {
			return false, errors.Join(err, errors.New("it is complete"))
		}
		q.l.retry()
		return ok, nil
	})
}

// A submission whose last trials were done by others, and whose run left the queue
// meanwhile, goes on.
func TestPublishingAfterTheRunWasClosed(t *testing.T) {
	l := newLab(t, manifest.Limits{})
	l.freshQueue()
	p := l.producer()
	p.Queue = forgetful{l.queue, new(bool)}
	if _, err := p.Rebuild(t.Context(), l.rec); err != nil {
		t.Fatal(err)
	}
	if _, live := l.inQueue(); live != 4 {
		t.Fatalf("%d live", live)
	}
}

// forgetful has a run closed before the first jobs come.
type forgetful struct {
	producer.Queue
	did *bool
}

func (q forgetful) Publish(ctx context.Context, run string, jobs []queue.Job) (queue.Published, error) {
	if !*q.did {
		*q.did = true
		if closed, err := q.CloseRun(ctx, run, func(context.Context) (bool, error) { return true, nil }); err != nil || !closed {
			return queue.Published{}, errors.Join(err, errors.New("not closed"))
		}
	}
	return q.Queue.Publish(ctx, run, jobs)
}
