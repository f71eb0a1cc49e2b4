// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

// benchServers are the two ways to store, in process.
func benchServers(b *testing.B, run func(b *testing.B, s *embedded.Server)) {
	for _, relaxed := range []bool{false, true} {
		name := "sync=always"
		if relaxed {
			name = "sync=default"
		}
		b.Run(name, func(b *testing.B) {
			s, err := embedded.Start(b.Context(), embedded.Config{Dir: b.TempDir(), RelaxedSync: relaxed})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(s.Shutdown)
			run(b, s)
		})
	}
}

func benchJobs(n int) []queue.Job {
	jobs := make([]queue.Job, n)
	for i := range jobs {
		jobs[i] = queue.Job{ID: queue.ID{Trial: fmt.Sprintf("%032x", i), Epoch: 1, Release: 1}, Body: make([]byte, 200)}
	}
	return jobs
}

func reportRate(b *testing.B, n int) {
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkConsume takes b.N jobs out, by lease and done, and by a bare fetch and
// double ack.
func BenchmarkConsume(b *testing.B) {
	benchServers(b, func(b *testing.B, s *embedded.Server) {
		runs := 0
		for _, workers := range []int{1, 8} {
			fill := func(b *testing.B) (*natsqueue.Queue, queue.Run) {
				q := open(b, s)
				runs++
				run := queue.Run{ID: fmt.Sprintf("run%d", runs), Class: "subprocess"}
				if err := q.OpenRun(b.Context(), run); err != nil {
					b.Fatal(err)
				}
				if _, err := q.Publish(b.Context(), run.ID, benchJobs(b.N)); err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				return q, run
			}
			// take calls one once for each job, from all workers.
			take := func(b *testing.B, one func(worker int) error) {
				left := make(chan struct{}, b.N)
				for range b.N {
					left <- struct{}{}
				}
				close(left)
				var wg sync.WaitGroup
				for w := range workers {
					wg.Go(func() {
						for range left {
							if err := one(w); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				reportRate(b, b.N)
			}
			b.Run(fmt.Sprintf("workers=%d/by=fetch", workers), func(b *testing.B) {
				q, run := fill(b)
				defer q.CloseRun(context.Background(), run.ID)
				js, _ := jetstream.New(connect(b, s))
				c, err := js.Consumer(b.Context(), "TRIALS", run.ID)
				if err != nil {
					b.Fatal(err)
				}
				take(b, func(int) error {
					m, err := c.Next()
					if err != nil {
						return err
					}
					return m.DoubleAck(b.Context())
				})
			})
			b.Run(fmt.Sprintf("workers=%d/by=lease", workers), func(b *testing.B) {
				q, run := fill(b)
				defer q.CloseRun(context.Background(), run.ID)
				take(b, func(w int) error {
					l, err := q.Lease(b.Context(), queue.Request{
						Worker: fmt.Sprint(w), Offers: []string{"subprocess"}, Nonce: fmt.Sprintf("%032x", w),
					})
					if err != nil {
						return err
					}
					return l.Done(b.Context())
				})
			})
		}
	})
}
