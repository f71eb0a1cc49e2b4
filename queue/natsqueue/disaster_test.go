// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

// worker leases and ends jobs until ctx ends, as a process that nobody restarts.
func worker(ctx context.Context, t *testing.T, q queue.Queue, done chan<- string) {
	for ctx.Err() == nil {
		l, err := q.Lease(ctx, ask("e"))
		switch {
		case errors.Is(err, queue.ErrUnreachable):
			continue
		case ctx.Err() != nil:
			return
		case err != nil:
			t.Errorf("lease: %v", err)
			return
		}
		for {
			err := l.Done(context.WithoutCancel(ctx))
			if err == nil {
				done <- l.Job().Trial
			}
			if err == nil || errors.Is(err, queue.ErrLost) {
				break
			}
			if !errors.Is(err, queue.ErrUnreachable) {
				t.Errorf("done: %v", err)
				return
			}
		}
	}
}

// Whatever an operator deletes while workers run, one thing or all: all of the run is done,
// and nobody hangs. Only what held the jobs or the run needs that it is submitted again.
func TestAnythingDeleted(t *testing.T) {
	deletions := map[string]func(t *testing.T, js jetstream.JetStream){}
	resubmit := map[string]bool{"TRIALS": true, "KV_tidemill-runs": true}
	for _, stream := range []string{"TRIALS", "DEAD", "STRANDED", "KV_tidemill-runs", "KV_tidemill-leases", "KV_tidemill-starts"} {
		deletions[stream] = func(t *testing.T, js jetstream.JetStream) {
			if err := js.DeleteStream(t.Context(), stream); err != nil {
				t.Fatal(err)
			}
		}
	}
	deletions["consumer"] = func(t *testing.T, js jetstream.JetStream) {
		err := js.DeleteConsumer(t.Context(), "TRIALS", "r")
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			t.Fatal(err) // with everything else it may be gone already
		}
	}
	for name, remove := range deletions {
		t.Run(name, func(t *testing.T) { t.Parallel(); deletedUnderWorkers(t, remove, resubmit[name]) })
	}
	t.Run("everything", func(t *testing.T) {
		t.Parallel()
		deletedUnderWorkers(t, func(t *testing.T, js jetstream.JetStream) {
			for _, remove := range deletions {
				remove(t, js)
			}
		}, true)
	})
}

func deletedUnderWorkers(t *testing.T, remove func(*testing.T, jetstream.JetStream), resubmit bool) {
	const each = 40
	s := startServer(t)
	producer := open(t, s, quick)
	js, err := jetstream.New(connect(t, s))
	if err != nil {
		t.Fatal(err)
	}
	run := queue.Run{ID: "r", Class: "a", Limits: queue.Limits{MaxInFlight: 3, MaxStartsPerSecond: 10000}}
	submit := func(release int) {
		t.Helper()
		var jobs []queue.Job
		for i := range each {
			jobs = append(jobs, queue.Job{ID: queue.ID{Trial: fmt.Sprint("t", i), Epoch: 1, Release: release}})
		}
		persist(t, "open run", func() error { return producer.OpenRun(t.Context(), run) })
		persist(t, "publish", func() error { _, err := producer.Publish(t.Context(), "r", jobs); return err })
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan string, 10*each)
	var wg sync.WaitGroup
	for range 2 {
		q := open(t, s, quick)
		for range 2 {
			wg.Go(func() { worker(ctx, t, q, done) })
		}
	}
	defer wg.Wait()
	defer cancel()
	submit(1)
	first, second := <-done, <-done // they work
	remove(t, js)
	if resubmit {
		submit(2) // as submit and resume do: the next release of all that has no commit
	}
	seen := map[string]bool{first: true, second: true}
	patience := time.After(60 * time.Second)
	for len(seen) < each {
		select {
		case trial := <-done:
			seen[trial] = true
		case <-patience:
			t.Fatalf("only %d of %d trials were done", len(seen), each)
		}
	}
	for { // what came twice ends too
		var got queue.Stats
		persist(t, "stats", func() (err error) { got, err = producer.Stats(t.Context(), "r"); return err })
		if got.Live() == 0 {
			break
		}
		select {
		case <-done:
		case <-time.After(50 * time.Millisecond): // until the workers are through
		case <-patience:
			t.Fatalf("%+v is left", got)
		}
	}
}

// holders leases n jobs, half by each of two values.
func holders(t *testing.T, n int, values ...queue.Queue) []queue.Lease {
	t.Helper()
	var leases []queue.Lease
	for i := range n {
		leases = append(leases, lease(t, values[i%len(values)], "f"))
	}
	return leases
}

func fiftyJobs() (names []string) {
	for i := range 50 {
		names = append(names, fmt.Sprint("t", i))
	}
	return names
}

func alive(t *testing.T, leases []queue.Lease) {
	t.Helper()
	for _, l := range leases {
		select {
		case <-l.Revoked():
			t.Fatalf("the lease of %s was revoked", l.Job().ID)
		default:
		}
	}
}

// endAll ends each lease, once.
func endAll(t *testing.T, leases []queue.Lease) {
	t.Helper()
	for _, l := range leases {
		persist(t, "done of "+l.Job().Trial, func() error { return l.Done(t.Context()) })
		if err := l.Done(t.Context()); !errors.Is(err, queue.ErrLost) {
			t.Fatalf("done of %s again: %v, want ErrLost", l.Job().ID, err)
		}
	}
}

func settling(c *natsqueue.Config) {
	c.LeaseTTL, c.LeaseSettle, c.CallTimeout = 4*time.Second, 2*time.Second, time.Second
}

// A server that is restarted ten times in a row costs no running trial.
func TestFiftyLeasesSurviveTenRestarts(t *testing.T) {
	s := startServer(t)
	one, two := open(t, s, settling), open(t, s, settling)
	thief := open(t, s, settling)
	fill(t, one, fiftyJobs()...)
	leases := holders(t, 50, one, two)
	ctx, cancel := context.WithCancel(t.Context())
	stolen := make(chan string, 50)
	var wg sync.WaitGroup
	wg.Go(func() { worker(ctx, t, thief, stolen) })
	defer wg.Wait()
	defer cancel()
	for range 10 {
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, l := range leases { // as each holder's heartbeat does
			persist(t, "extend", func() error { return l.Extend(t.Context()) })
		}
		alive(t, leases)
	}
	endAll(t, leases)
	got, err := one.Stats(t.Context(), "r")
	if err != nil || got != (queue.Stats{}) {
		t.Fatalf("stats = %+v, %v, want nothing left", got, err)
	}
	select {
	case trial := <-stolen:
		t.Fatalf("%s was taken from its holder", trial)
	default:
	}
}

// The same with a server that lost its disk: the holders make their leases anew, and
// nobody else gets in before they did.
func TestFiftyLeasesSurviveAWipe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nats")
	s, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, RelaxedSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	one, two := open(t, s, settling), open(t, s, settling)
	thief, producer := open(t, s, settling), open(t, s, settling)
	fill(t, one, fiftyJobs()...)
	leases := holders(t, 50, one, two)
	ctx, cancel := context.WithCancel(t.Context())
	stolen := make(chan string, 100)
	var wg sync.WaitGroup
	wg.Go(func() { worker(ctx, t, thief, stolen) })
	defer wg.Wait()
	defer cancel()

	s.Shutdown()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The producer is the first to come back, and puts in all that has no commit.
	persist(t, "open run", func() error { return producer.OpenRun(t.Context(), anyRun) })
	jobs := []queue.Job{trial("fresh")}
	for _, name := range fiftyJobs() {
		jobs = append(jobs, trial(name))
	}
	persist(t, "publish", func() error { _, err := producer.Publish(t.Context(), "r", jobs); return err })
	for _, l := range leases {
		persist(t, "extend", func() error { return l.Extend(t.Context()) })
	}
	// When the thief got the fresh one, the time to settle is over.
	if got := <-stolen; got != "fresh" {
		t.Fatalf("%s was taken from its holder", got)
	}
	for _, l := range leases {
		persist(t, "extend", func() error { return l.Extend(t.Context()) })
	}
	alive(t, leases)
	select {
	case got := <-stolen:
		t.Fatalf("%s was taken from its holder", got)
	default:
	}
	endAll(t, leases)
	// What the producer put in once more is found committed by whoever gets it.
	seen := map[string]bool{}
	for len(seen) < 50 {
		select {
		case got := <-stolen:
			seen[got] = true
		case <-time.After(60 * time.Second):
			t.Fatalf("%d of 50 came again, want all", len(seen))
		}
	}
}

// A claimant that does not know that the leases were made anew must not take the empty
// place in the new bucket for a free trial.
func TestClaimantThatMissedTheWipe(t *testing.T) {
	s := startServer(t)
	long := func(c *natsqueue.Config) { c.LeaseTTL, c.LeaseSettle = 60*time.Second, 2*time.Second }
	owner, claimant := open(t, s, long), open(t, s, long)
	fill(t, owner, "held")
	// The bucket has to be old enough to be trusted.
	held := lease(t, owner, "a")
	js, err := jetstream.New(connect(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "KV_tidemill-leases"); err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteConsumer(t.Context(), "TRIALS", "r"); err != nil { // it is delivered again at once
		t.Fatal(err)
	}
	if err := owner.OpenRun(t.Context(), anyRun); err != nil { // makes the bucket anew; the claimant isn't told
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if l, err := claimant.Lease(ctx, ask("b")); err == nil {
		t.Fatalf("%s was leased while its holder had no time to come back", l.Job().ID)
	}
	if err := held.Extend(t.Context()); err != nil {
		t.Fatalf("extend of the holder: %v", err)
	}
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A trial of ten lease lengths runs once.
func TestTenLeaseLengths(t *testing.T) {
	s := startServer(t)
	q, other := open(t, s), open(t, s)
	fill(t, q, "long")
	l := lease(t, q, "a")
	ctx, cancel := context.WithTimeout(t.Context(), 10*testTTL)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(testTTL / 5)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := l.Extend(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("extend: %v", err)
			}
			<-tick.C
		}
	})
	if got, err := other.Lease(ctx, ask("b")); err == nil {
		t.Errorf("%s was handed out again", got.Job().ID)
	}
	wg.Wait()
	if err := l.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// With no grace the holder is told at once that nobody answers, and nothing is sent when
// somebody does again.
func TestNothingIsSentLate(t *testing.T) {
	s := startServer(t)
	q := open(t, s, quick)
	fill(t, q, "a")
	l := lease(t, q, "a")
	s.Shutdown()
	for doing, call := range map[string]func() error{
		"extend": func() error { return l.Extend(t.Context()) },
		"done":   func() error { return l.Done(t.Context()) },
	} {
		if err := call(); !errors.Is(err, queue.ErrUnreachable) {
			t.Errorf("%s: %v, want ErrUnreachable", doing, err)
		}
	}
	l.Abandon()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	persist(t, "open run", func() error { return q.OpenRun(t.Context(), anyRun) })
	got, err := q.Stats(t.Context(), "r")
	if err != nil || got.Live() != 1 {
		t.Fatalf("stats = %+v, %v, want the job that was abandoned", got, err)
	}
	if again := lease(t, q, "b"); !strings.HasPrefix(again.Job().Trial, "a") || again.Fence() <= l.Fence() {
		t.Fatalf("leased %s with fence %d, want the same job with a larger one", again.Job().ID, again.Fence())
	}
}

// A run can be purged and closed although there is nothing left of it.
func TestPurgeAndCloseAfterAWipe(t *testing.T) {
	s := startServer(t)
	q := open(t, s)
	js, err := jetstream.New(connect(t, s))
	if err != nil {
		t.Fatal(err)
	}
	for doing, call := range map[string]func() error{
		"purge": func() error { _, err := q.PurgeRun(t.Context(), "r"); return err },
		"close": func() error { _, err := q.CloseRun(t.Context(), "r", nothingLeft); return err },
	} {
		fill(t, q, "a")
		for _, stream := range []string{"TRIALS", "KV_tidemill-leases"} {
			if err := js.DeleteStream(t.Context(), stream); err != nil {
				t.Fatal(err)
			}
		}
		if err := call(); err != nil {
			t.Errorf("%s: %v", doing, err)
		}
	}
}
