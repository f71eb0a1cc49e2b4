// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/memqueue"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

// enqueueTrials is how many trials each side of a pair enqueues.
const enqueueTrials = 100_000

const enqueueStore = "00000000-0000-4000-8000-000000000000"

// BenchmarkEnqueue sets a submission, from the draft to the last job, beside raw atomic
// batches of the same messages, in turn. The submission reads the tasks, makes the plan's
// parts, stores them, and publishes by natsqueue; the raw side has its jobs ready. An
// iteration is one pair, and each side of it has a server of its own that starts empty;
// who comes first alternates. ratio is the median of raw time by ours, pair by pair.
func BenchmarkEnqueue(b *testing.B) {
	stores := map[string]func(b *testing.B) bundle.Store{
		"mem": func(*testing.B) bundle.Store { return memstore.New() },
		"dir": func(b *testing.B) bundle.Store {
			s, err := dirstore.Open(filepath.Join(benchDir(b), "store"), dirstore.Options{})
			if err != nil {
				b.Fatal(err)
			}
			return s
		},
	}
	for _, name := range []string{"mem", "dir"} {
		b.Run("store="+name, func(b *testing.B) {
			b.StopTimer()
			d := enqueueDraft(b)
			defer d.Close()
			jobs := enqueueJobs(b, d)
			var p pairs
			for i := range b.N {
				var mine, raw enqueued
				if i%2 == 0 {
					mine, raw = submitAll(b, d, stores[name]), publishAll(b, jobs)
				} else {
					raw, mine = publishAll(b, jobs), submitAll(b, d, stores[name])
				}
				if mine.state.Msgs != enqueueTrials || mine.state.Bytes != raw.state.Bytes {
					b.Fatalf("the submission put in %d messages, %d bytes, by hand it were %d, %d: not the same",
						mine.state.Msgs, mine.state.Bytes, raw.state.Msgs, raw.state.Bytes)
				}
				p.first, p.second = append(p.first, raw.took.Seconds()), append(p.second, mine.took.Seconds())
			}
			b.ReportMetric(p.ratio(), "ratio")
			b.ReportMetric(enqueueTrials/median(p.second), "trials/s")
			b.ReportMetric(enqueueTrials/median(p.first), "raw/s")
		})
	}
}

// enqueued is what one side of a pair did.
type enqueued struct {
	took  time.Duration
	state jetstream.StreamState // of the stream afterwards
}

func enqueueDraft(b *testing.B) *producer.Draft {
	b.Helper()
	r := &rig{dir: benchDir(b)}
	runs, err := manifest.Load(r.runFile(b, enqueueTrials, isolations[0]), manifest.LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	d, err := producer.NewDraft(b.Context(), runs[0], manifest.LoadOptions{}, r.dir)
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// recorder is a queue that keeps what is published.
type recorder struct {
	*memqueue.Queue
	jobs []queue.Job
}

func (q *recorder) Publish(_ context.Context, _ string, jobs []queue.Job) (queue.Published, error) {
	q.jobs = append(q.jobs, jobs...)
	return queue.Published{Stored: len(jobs)}, nil
}

// enqueueJobs are the jobs of the draft, which are the same each time it is submitted.
func enqueueJobs(b *testing.B, d *producer.Draft) []queue.Job {
	b.Helper()
	mem, err := memqueue.New(memqueue.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer mem.Close()
	q := &recorder{Queue: mem}
	enqueue(b, d, memstore.New(), q)
	return q.jobs
}

func enqueue(b *testing.B, d *producer.Draft, store bundle.Store, q producer.Queue) {
	b.Helper()
	p := producer.Producer{Store: store, StoreUUID: enqueueStore, Queue: q, Log: zerolog.Nop()}
	sub, err := p.Submit(b.Context(), d, producer.Options{RunID: "run"})
	if err != nil || sub.Planned != enqueueTrials || sub.Enqueued != enqueueTrials {
		b.Fatalf("%+v, %v", sub, err)
	}
}

// enqueueSide runs one side of a pair on a server of its own. work gets the queue's connection;
// the time that it takes is measured, and starts without the garbage of the other side.
func enqueueSide(b *testing.B, work func(q *natsqueue.Queue, nc *nats.Conn)) enqueued {
	b.Helper()
	s, err := embedded.Start(b.Context(), embedded.Config{Dir: benchDir(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Shutdown()
	nc, err := s.Connect()
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	q, err := natsqueue.Open(b.Context(), nc, natsqueue.Config{Store: enqueueStore, LeaseSettle: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	goruntime.GC()
	b.StartTimer()
	start := time.Now()
	work(q, nc)
	took := time.Since(start)
	b.StopTimer()
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	stream, err := js.Stream(b.Context(), "TRIALS")
	if err != nil {
		b.Fatal(err)
	}
	return enqueued{took, stream.CachedInfo().State}
}

func submitAll(b *testing.B, d *producer.Draft, open func(*testing.B) bundle.Store) enqueued {
	store := open(b)
	defer store.Close()
	return enqueueSide(b, func(q *natsqueue.Queue, _ *nats.Conn) { enqueue(b, d, store, q) })
}

// publishAll publishes the messages that the queue makes of the jobs, to the stream that
// the queue has made.
func publishAll(b *testing.B, jobs []queue.Job) enqueued {
	return enqueueSide(b, func(_ *natsqueue.Queue, nc *nats.Conn) {
		js, err := jetstream.New(nc)
		if err != nil {
			b.Fatal(err)
		}
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
			if _, err := jetstreamext.PublishMsgBatch(b.Context(), js, msgs, jetstreamext.BatchFlowControl{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
