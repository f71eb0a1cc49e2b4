// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"context"
	"flag"
	"fmt"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

// pairJobs is how many jobs each side of a pair publishes. For a million:
//
//	go test -run xxx -bench Publish -benchtime 1x ./queue/natsqueue -args -jobs 1000000
var pairJobs = flag.Int("jobs", 100_000, "how many jobs each side of a pair publishes in a benchmark")

// BenchmarkPublish sets the queue's publishing beside raw atomic batches of the same
// messages, in turn, so that both have the machine's good and bad moments. An iteration
// is one pair, and each side of it has a server of its own that starts empty; who comes
// first alternates. ratio is the median of raw time by the queue's time, pair by pair: 1
// would be a queue that costs nothing.
func BenchmarkPublish(b *testing.B) {
	for _, relaxed := range []bool{false, true} {
		name := "sync=always"
		if relaxed {
			name = "sync=default"
		}
		b.Run(name, func(b *testing.B) {
			jobs := pairOf(*pairJobs)
			var ratios, ours, raws []float64
			for i := range b.N {
				var mine, raw side
				if i%2 == 0 {
					mine, raw = byQueue(b, relaxed, jobs), byHand(b, relaxed, jobs)
				} else {
					raw, mine = byHand(b, relaxed, jobs), byQueue(b, relaxed, jobs)
				}
				if mine.bytes != raw.bytes {
					b.Fatalf("the queue stored %d bytes, by hand it were %d: not the same messages", mine.bytes, raw.bytes)
				}
				ratios = append(ratios, raw.took.Seconds()/mine.took.Seconds())
				ours = append(ours, float64(*pairJobs)/mine.took.Seconds())
				raws = append(raws, float64(*pairJobs)/raw.took.Seconds())
			}
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(median(ours), "jobs/s")
			b.ReportMetric(median(raws), "raw/s")
		})
	}
}

// side is what one side of a pair did.
type side struct {
	took  time.Duration
	bytes uint64 // that the stream holds afterwards
}

// pairOf makes jobs as a producer does.
func pairOf(n int) []queue.Job {
	jobs := make([]queue.Job, n)
	for i := range jobs {
		jobs[i] = queue.Job{
			ID:   queue.ID{Trial: fmt.Sprintf("%032x", i), Epoch: 1, Release: 1},
			Body: fmt.Appendf(nil, `{"part":%d,"row":%d}`, i/5000, i%5000),
		}
	}
	return jobs
}

// onServer runs one side with a server of its own, whose start and end take no time of
// the benchmark's.
func onServer(b *testing.B, relaxed bool, run func(ctx context.Context, s *embedded.Server, nc *nats.Conn) side) side {
	b.Helper()
	b.StopTimer()
	defer b.StartTimer()
	s, err := embedded.Start(b.Context(), embedded.Config{Dir: b.TempDir(), RelaxedSync: relaxed})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Shutdown()
	nc, err := s.Connect()
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	return run(b.Context(), s, nc)
}

// timed measures one side's work, and starts it without the garbage of the other side.
func timed(b *testing.B, work func() error) time.Duration {
	b.Helper()
	goruntime.GC()
	b.StartTimer()
	start := time.Now()
	err := work()
	took := time.Since(start)
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
	return took
}

func byQueue(b *testing.B, relaxed bool, jobs []queue.Job) side {
	return onServer(b, relaxed, func(ctx context.Context, s *embedded.Server, nc *nats.Conn) side {
		q := open(b, s)
		defer q.Close()
		run := queue.Run{ID: "run", Class: "subprocess"}
		if err := q.OpenRun(ctx, run); err != nil {
			b.Fatal(err)
		}
		var got queue.Published
		took := timed(b, func() (err error) {
			got, err = q.Publish(ctx, run.ID, jobs)
			return err
		})
		if got.Stored != len(jobs) {
			b.Fatalf("published %+v of %d jobs", got, len(jobs))
		}
		return side{took, trialsState(b, nc).Bytes}
	})
}

// byHand publishes the messages that the queue makes of the jobs, to a stream as the
// queue makes it.
func byHand(b *testing.B, relaxed bool, jobs []queue.Job) side {
	return onServer(b, relaxed, func(ctx context.Context, s *embedded.Server, nc *nats.Conn) side {
		_ = open(b, s).Close() // leaves the stream
		js, err := jetstream.New(nc)
		if err != nil {
			b.Fatal(err)
		}
		took := timed(b, func() error {
			for batch := range slices.Chunk(jobs, 1000) {
				msgs := make([]*nats.Msg, len(batch))
				for i, j := range batch {
					msgs[i] = &nats.Msg{
						Subject: "tidemill.trials.default.subprocess.run." + j.Trial, Data: j.Body,
						Header: nats.Header{
							jetstream.MsgIDHeader:               {"run/" + j.ID.String()},
							jetstream.ExpectedLastSubjSeqHeader: {"0"},
						},
					}
				}
				if _, err := jetstreamext.PublishMsgBatch(ctx, js, msgs, jetstreamext.BatchFlowControl{}); err != nil {
					return err
				}
			}
			return nil
		})
		return side{took, trialsState(b, nc).Bytes}
	})
}

func trialsState(b *testing.B, nc *nats.Conn) jetstream.StreamState {
	b.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	s, err := js.Stream(b.Context(), "TRIALS")
	if err != nil {
		b.Fatal(err)
	}
	return s.CachedInfo().State
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}
