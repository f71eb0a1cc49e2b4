// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// faultyLease goes by its queue, and holds its holder to the order of calls: nothing may
// be said beside or behind the answer that ended it.
type faultyLease struct {
	queue.Lease
	q     *faultyQueue
	busy  atomic.Int32
	ended atomic.Bool
}

func (l *faultyLease) do(ctx context.Context, name string, last bool, call func() error) error {
	if l.busy.Add(1) > 1 {
		panic(name + " beside another call of one lease")
	}
	defer l.busy.Add(-1)
	if l.ended.Load() {
		panic(name + " after the lease was ended")
	}
	if err := l.q.call(ctx, name); err != nil {
		return err
	}
	err := call()
	if err == nil && last {
		l.ended.Store(true)
	}
	return err
}

func (l *faultyLease) Revoked() <-chan struct{} {
	if l.q.deaf {
		return nil
	}
	return l.Lease.Revoked()
}

func (l *faultyLease) Extend(ctx context.Context) error {
	return l.do(ctx, "extend", false, func() error { return l.Lease.Extend(ctx) })
}

func (l *faultyLease) Done(ctx context.Context) error {
	return l.do(ctx, "done", true, func() error { return l.Lease.Done(ctx) })
}

func (l *faultyLease) Retry(ctx context.Context, after time.Duration, body []byte) error {
	return l.do(ctx, "retry", true, func() error { return l.Lease.Retry(ctx, after, body) })
}

func (l *faultyLease) HandBack(ctx context.Context) error {
	return l.do(ctx, "hand back", true, func() error { return l.Lease.HandBack(ctx) })
}

func (l *faultyLease) Bury(ctx context.Context, reason string) error {
	return l.do(ctx, "bury", true, func() error { return l.Lease.Bury(ctx, reason) })
}

func (l *faultyLease) Abandon() {
	gone, cancel := context.WithCancel(context.Background())
	cancel() // it asks nobody
	_ = l.q.call(gone, "abandon")
	l.ended.Store(true)
	l.Lease.Abandon()
}
