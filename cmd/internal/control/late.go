// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"sync"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// lateQueue is a queue that is connected to when it is told something for the first time:
// what is decided is in the store by then, whatever becomes of the queue.
type lateQueue struct {
	dial func(context.Context) (*natsqueue.Queue, error)

	mu  sync.Mutex
	q   *natsqueue.Queue
	err error // of the one try
}

func (l *lateQueue) get(ctx context.Context) (*natsqueue.Queue, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.q == nil && l.err == nil {
		l.q, l.err = l.dial(ctx)
	}
	return l.q, l.err
}

func (l *lateQueue) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.q == nil {
		return nil
	}
	return l.q.Close()
}

func (l *lateQueue) OpenRun(ctx context.Context, run queue.Run) error {
	q, err := l.get(ctx)
	if err != nil {
		return err
	}
	return q.OpenRun(ctx, run)
}

func (l *lateQueue) PauseRun(ctx context.Context, run string) error {
	q, err := l.get(ctx)
	if err != nil {
		return err
	}
	return q.PauseRun(ctx, run)
}

func (l *lateQueue) ResumeRun(ctx context.Context, run string) error {
	q, err := l.get(ctx)
	if err != nil {
		return err
	}
	return q.ResumeRun(ctx, run)
}

func (l *lateQueue) PurgeRun(ctx context.Context, run string) (int, error) {
	q, err := l.get(ctx)
	if err != nil {
		return 0, err
	}
	return q.PurgeRun(ctx, run)
}

func (l *lateQueue) CloseRun(ctx context.Context, run string, settled func(context.Context) (bool, error)) (bool, error) {
	q, err := l.get(ctx)
	if err != nil {
		return false, err
	}
	return q.CloseRun(ctx, run, settled)
}

func (l *lateQueue) Publish(ctx context.Context, run string, jobs []queue.Job) (queue.Published, error) {
	q, err := l.get(ctx)
	if err != nil {
		return queue.Published{}, err
	}
	return q.Publish(ctx, run, jobs)
}
