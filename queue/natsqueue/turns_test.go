// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

func numbered(prefix string, n int) []queue.Job {
	jobs := make([]queue.Job, n)
	for i := range jobs {
		jobs[i] = queue.Job{ID: queue.ID{Trial: fmt.Sprint(prefix, i), Epoch: 1, Release: 1}}
	}
	return jobs
}

// values opens some values on one server, as a fleet would.
func values(t *testing.T, n int) []*Queue {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), RelaxedSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	var fleet []*Queue
	for range n {
		nc, err := s.Connect()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		q, err := Open(t.Context(), nc, Config{Store: "s", LeaseSettle: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = q.Close() })
		fleet = append(fleet, q)
	}
	return fleet
}

// A run of 100 trials that comes behind one of 100,000 is through within three times the
// deliveries that it takes alone, on a fleet of several values with several slots each.
func TestSmallRunBehindAHugeOne(t *testing.T) {
	huge, small := 100_000, 100
	if testing.Short() {
		huge = 5000
	}
	fleet := values(t, 3)
	for _, id := range []string{"huge", "small"} {
		if err := fleet[0].OpenRun(t.Context(), queue.Run{ID: id, Class: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	for part := range slices.Chunk(numbered("h", huge), 10_000) {
		if _, err := fleet[0].Publish(t.Context(), "huge", part); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var counting atomic.Bool
	var deliveries, left atomic.Int64
	left.Store(int64(small))
	through := make(chan int64, 1)
	warm := make(chan struct{}, 1000)
	var wg sync.WaitGroup
	for i, q := range fleet {
		for slot := range 3 {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					l, err := q.Lease(ctx, request(fmt.Sprintf("%08x%08x", i*16+slot, n)))
					if err != nil {
						if ctx.Err() == nil {
							t.Errorf("lease: %v", err)
						}
						return
					}
					if counting.Load() {
						deliveries.Add(1)
					}
					if err := l.Done(t.Context()); err != nil {
						t.Errorf("done: %v", err)
					}
					if l.Job().Run == "small" && left.Add(-1) == 0 {
						through <- deliveries.Load()
					}
					select {
					case warm <- struct{}{}:
					default:
					}
				}
			})
		}
	}
	defer wg.Wait()
	defer cancel()
	for range 50 {
		<-warm // all are busy with the huge one
	}
	counting.Store(true)
	if _, err := fleet[0].Publish(t.Context(), "small", numbered("s", small)); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-through:
		if n > int64(3*small) {
			t.Errorf("%d deliveries until the small run was through, want %d at most", n, 3*small)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("%d trials of the small run are left", left.Load())
	}
}

// Ten thousand trials that wait for their retry take no place: with a cap of one, each
// fresh one starts. The signal for scaling knows which of them are due soon.
func TestTenThousandInBackoff(t *testing.T) {
	const n = 10_000
	q := values(t, 1)[0]
	r := queue.Run{ID: "r", Class: "a", Limits: queue.Limits{MaxInFlight: 1}}.WithDefaults()
	if err := q.OpenRun(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	patient, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for part := range slices.Chunk(numbered("d", n), 1000) {
		messages := make([]*nats.Msg, len(part))
		for i, j := range part {
			after := 30 * time.Second // every tenth is due soon
			if i%10 != 0 {
				after = time.Hour
			}
			messages[i] = q.again(r, j, after)
		}
		if _, err := jetstreamext.PublishMsgBatch(patient, q.js, messages, jetstreamext.BatchFlowControl{}); err != nil {
			t.Fatal(err)
		}
	}
	soon, err := q.dueSoon(t.Context())
	if err != nil || soon["r"] < n/20 || soon["r"] > n/5 {
		t.Errorf("%d are due soon, %v; want about %d", soon["r"], err, n/10)
	}
	if got, err := q.Publish(t.Context(), "r", numbered("f", 20)); err != nil || got.Stored != 20 {
		t.Fatalf("published %+v, %v", got, err)
	}
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		l, err := q.Lease(ctx, request(fmt.Sprintf("%016x", i)))
		cancel()
		if err != nil {
			t.Fatalf("fresh trial %d did not start: %v", i, err)
		}
		if l.Job().Trial != fmt.Sprint("f", i) {
			t.Fatalf("leased %s, want f%d", l.Job().Trial, i)
		}
		if err := l.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := q.Stats(t.Context(), "r"); err != nil || got != (queue.Stats{Delayed: n}) {
		t.Errorf("stats = %+v, %v, want %d delayed", got, err, n)
	}
}

// Nothing is left of a job that was done but its lease for a while: a run's end leaves an
// empty stream.
func TestStreamIsEmptyAfterARun(t *testing.T) {
	q := values(t, 1)[0]
	if err := q.OpenRun(t.Context(), queue.Run{ID: "r", Class: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Publish(t.Context(), "r", numbered("t", 100)); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		l, err := q.Lease(t.Context(), request(fmt.Sprintf("%016x", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	info, err := q.streamInfo(t.Context(), trialsStream)
	if err != nil || info.State.Msgs != 0 {
		t.Errorf("%d messages are left, %v, want none", info.State.Msgs, err)
	}
}
