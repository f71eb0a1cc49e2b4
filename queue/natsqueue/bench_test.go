// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

// consumeJobs is how many jobs each side of a pair takes out.
const consumeJobs = 1000

// BenchmarkConsume sets what the queue does for a trial (take a lease, renew it once, end it
// with a confirmed ack) beside a bare fetch with a double ack of the same messages, in
// turn. An iteration is one pair, each side with a server of its own. ratio is the median
// of the queue's time by the bare one, pair by pair: how many times as long it takes.
func BenchmarkConsume(b *testing.B) {
	for _, relaxed := range []bool{false, true} {
		for _, workers := range []int{1, 8} {
			name := fmt.Sprintf("sync=always/workers=%d", workers)
			if relaxed {
				name = fmt.Sprintf("sync=default/workers=%d", workers)
			}
			b.Run(name, func(b *testing.B) {
				var ratios, ours, bares []float64
				for i := range b.N {
					var mine, bare side
					if i%2 == 0 {
						mine, bare = consumeByLease(b, relaxed, workers), consumeByFetch(b, relaxed, workers)
					} else {
						bare, mine = consumeByFetch(b, relaxed, workers), consumeByLease(b, relaxed, workers)
					}
					ratios = append(ratios, mine.took.Seconds()/bare.took.Seconds())
					ours = append(ours, consumeJobs/mine.took.Seconds())
					bares = append(bares, consumeJobs/bare.took.Seconds())
				}
				b.ReportMetric(median(ratios), "ratio")
				b.ReportMetric(median(ours), "jobs/s")
				b.ReportMetric(median(bares), "bare/s")
			})
		}
	}
}

func consumeByLease(b *testing.B, relaxed bool, workers int) side {
	return onServer(b, relaxed, func(ctx context.Context, s *embedded.Server, nc *nats.Conn) side {
		q := open(b, s)
		defer q.Close()
		fillForConsume(ctx, b, q)
		took := timed(b, func() error {
			return share(workers, func(worker, n int) error {
				l, err := q.Lease(ctx, queue.Request{Worker: fmt.Sprint(worker), Offers: []string{"a"}, Nonce: fmt.Sprintf("%016x%016x", worker, n)})
				if err != nil {
					return err
				}
				if err := l.Extend(ctx); err != nil {
					return err
				}
				return l.Done(ctx)
			})
		})
		return side{took, wantEmpty(b, nc)}
	})
}

func consumeByFetch(b *testing.B, relaxed bool, workers int) side {
	return onServer(b, relaxed, func(ctx context.Context, s *embedded.Server, nc *nats.Conn) side {
		q := open(b, s)
		defer q.Close()
		fillForConsume(ctx, b, q)
		js, err := jetstream.New(nc)
		if err != nil {
			b.Fatal(err)
		}
		c, err := js.Consumer(ctx, "TRIALS", anyRun.ID)
		if err != nil {
			b.Fatal(err)
		}
		took := timed(b, func() error {
			return share(workers, func(int, int) error {
				m, err := c.Next()
				if err != nil {
					return err
				}
				return m.DoubleAck(ctx)
			})
		})
		return side{took, wantEmpty(b, nc)}
	})
}

func fillForConsume(ctx context.Context, b *testing.B, q queue.Queue) {
	b.Helper()
	if err := q.OpenRun(ctx, anyRun); err != nil {
		b.Fatal(err)
	}
	if got, err := q.Publish(ctx, anyRun.ID, pairOf(consumeJobs)); err != nil || got.Stored != consumeJobs {
		b.Fatalf("published %+v, %v", got, err)
	}
}

// share calls one for each job, from all workers.
func share(workers int, one func(worker, n int) error) error {
	left := make(chan int, consumeJobs)
	for n := range consumeJobs {
		left <- n
	}
	close(left)
	failed := make(chan error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := range left {
				if err := one(w, n); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	return <-failed
}

// wantEmpty fails when a side left something: it would not have done its work.
func wantEmpty(b *testing.B, nc *nats.Conn) (bytes uint64) {
	b.Helper()
	if n := trialsState(b, nc).Msgs; n != 0 {
		b.Fatalf("%d jobs are left", n)
	}
	return 0
}
