// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

// These are what JetStream does by itself, and what the queue makes of it.

func consumerOf(t *testing.T, js jetstream.JetStream, run string) jetstream.Consumer {
	t.Helper()
	c, err := js.Consumer(t.Context(), "TRIALS", run)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// JetStream takes an ack of a delivery that was replaced by a newer one. With leases the
// older holder is refused before it can say anything, and the newer one's job is there.
func TestAcksOfTheOldHolderDoNothing(t *testing.T) {
	s := startServer(t)
	q, other := open(t, s), open(t, s)
	fill(t, q, "a")
	stale := lease(t, q, "a")
	fresh := lease(t, other, "b") // when the first one's time is up
	for doing, call := range map[string]func() error{
		"extend": func() error { return stale.Extend(t.Context()) },
		"done":   func() error { return stale.Done(t.Context()) },
	} {
		if err := call(); !errors.Is(err, queue.ErrLost) {
			t.Errorf("%s of the old holder: %v, want ErrLost", doing, err)
		}
	}
	if got, err := q.Stats(t.Context(), "r"); err != nil || got.InFlight != 1 {
		t.Errorf("stats = %+v, %v, want the job in flight", got, err)
	}
	if err := fresh.Done(t.Context()); err != nil {
		t.Error(err)
	}
}

// A BackOff overrides the time to ack, and a MaxDeliver leaves jobs where nobody counts
// them. A consumer that somebody gave either gets right again when its run is opened.
func TestConsumersAreWhatTheyShouldBe(t *testing.T) {
	s := startServer(t)
	q := open(t, s)
	js, err := jetstream.New(connect(t, s))
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, want queue.Run) {
		t.Helper()
		info, err := consumerOf(t, js, "r").Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := info.Config
		limit := want.Limits.MaxInFlight
		if limit == 0 {
			limit = -1
		}
		if len(c.BackOff) != 0 || c.MaxDeliver != -1 || c.AckWait != testTTL || c.MaxAckPending != limit ||
			c.AckPolicy != jetstream.AckExplicitPolicy || c.MaxWaiting <= 512 || info.Paused != want.Paused {
			t.Errorf("%s the consumer is %+v, paused %v", when, c, info.Paused)
		}
	}
	run := anyRun
	if err := q.OpenRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	check("fresh", run)
	bad := consumerOf(t, js, "r").CachedInfo().Config
	bad.MaxDeliver, bad.BackOff, bad.MaxAckPending = 5, []time.Duration{time.Second, 2 * time.Second}, 7
	if _, err := js.UpdateConsumer(t.Context(), "TRIALS", bad); err != nil {
		t.Fatal(err)
	}
	run.Limits.MaxInFlight = 3
	if err := q.OpenRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	check("opened anew", run)
	// The server itself holds the pause: who asks it gets nothing.
	run.Paused = true
	if err := q.PauseRun(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	check("paused", run)
	if _, err := q.Publish(t.Context(), "r", []queue.Job{trial("a")}); err != nil {
		t.Fatal(err)
	}
	batch, err := consumerOf(t, js, "r").FetchNoWait(1)
	if err != nil {
		t.Fatal(err)
	}
	for m := range batch.Messages() {
		t.Errorf("a paused consumer delivered %s", m.Subject())
	}
	run.Paused = false
	if err := q.ResumeRun(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	check("resumed", run)
	if err := lease(t, q, "a").Done(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Ids outlive a purge for the deduplication window. Released anew, each trial comes,
// however often the run is paused, purged and put in again within the window.
func TestEveryReleaseIsDelivered(t *testing.T) {
	s := startServer(t)
	q := open(t, s)
	const n = 30
	if err := q.OpenRun(t.Context(), anyRun); err != nil {
		t.Fatal(err)
	}
	for release := 1; release <= 4; release++ {
		jobs := make([]queue.Job, n)
		for i := range jobs {
			jobs[i] = queue.Job{ID: queue.ID{Trial: fmt.Sprint("t", i), Epoch: 1, Release: release}}
		}
		if got, err := q.Publish(t.Context(), "r", jobs); err != nil || got.Stored != n {
			t.Fatalf("release %d: published %+v, %v, want all stored", release, got, err)
		}
		if release == 4 {
			break
		}
		for range 5 { // some are done already
			if err := lease(t, q, "a").Done(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.PauseRun(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		if _, err := q.PurgeRun(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		if err := q.ResumeRun(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for range n {
		l := lease(t, q, "a")
		seen[l.Job().Trial] = true
		if err := l.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := q.Stats(t.Context(), "r"); len(seen) != n || err != nil || got.Live() != 0 {
		t.Fatalf("%d trials came, %+v is left, %v; want %d and nothing", len(seen), got, err, n)
	}
}

// A consumer with a MaxDeliver leaves a job in the stream, where it is neither pending nor
// in flight. The advisory tells, and the job comes back.
func TestStrandedJobComesBack(t *testing.T) {
	for _, heard := range []bool{true, false} {
		t.Run(fmt.Sprintf("heard=%v", heard), func(t *testing.T) {
			s := startServer(t)
			q := open(t, s)
			fill(t, q, "a")
			js, err := jetstream.New(connect(t, s))
			if err != nil {
				t.Fatal(err)
			}
			if !heard { // nobody is there: the stream has to keep it
				if err := q.Close(); err != nil {
					t.Fatal(err)
				}
			}
			bad := consumerOf(t, js, "r").CachedInfo().Config
			bad.MaxDeliver = 1
			c, err := js.UpdateConsumer(t.Context(), "TRIALS", bad)
			if err != nil {
				t.Fatal(err)
			}
			m, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Nak(); err != nil {
				t.Fatal(err)
			}
			if !heard {
				kept := func() bool {
					st, err := js.Stream(t.Context(), "STRANDED")
					if err != nil {
						t.Fatal(err)
					}
					return st.CachedInfo().State.Msgs == 1
				}
				for end := time.Now().Add(30 * time.Second); !kept(); time.Sleep(20 * time.Millisecond) { // until the server said so
					if time.Now().After(end) {
						t.Fatal("the advisory was never kept")
					}
					if batch, err := c.FetchNoWait(1); err == nil { // the server only finds out when it is asked
						for m := range batch.Messages() {
							t.Fatalf("%s was delivered beyond its limit", m.Subject())
						}
					}
				}
			}
			back := lease(t, open(t, s), "b")
			if got := back.Job(); got.Trial != "a" || got.Release != 2 {
				t.Errorf("leased %s, want the next release of a", got.ID)
			}
			if err := back.Done(t.Context()); err != nil {
				t.Fatal(err)
			}
			if info, err := consumerOf(t, js, "r").Info(t.Context()); err != nil || info.Config.MaxDeliver != -1 {
				t.Errorf("MaxDeliver of the consumer is %v, %v, want -1", info.Config.MaxDeliver, err)
			}
			st, err := js.Stream(t.Context(), "TRIALS")
			if err != nil {
				t.Fatal(err)
			}
			if n := st.CachedInfo().State.Msgs; n != 0 {
				t.Errorf("%d messages are left in TRIALS, want none", n)
			}
		})
	}
}

// A batch with a duplicate is refused whole by JetStream (10201). What is new of it goes
// in all the same.
func TestDuplicateInABatch(t *testing.T) {
	s := startServer(t)
	q := open(t, s)
	fill(t, q, "done")
	if err := lease(t, q, "a").Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	// One that is known and gone, one that waits, one that is delayed, one that is in flight.
	for _, name := range []string{"flying", "delayed", "waiting"} {
		if _, err := q.Publish(t.Context(), "r", []queue.Job{trial(name)}); err != nil {
			t.Fatal(err)
		}
	}
	flying, delayed := lease(t, q, "a"), lease(t, q, "b")
	if err := delayed.Retry(t.Context(), time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	got, err := q.Publish(t.Context(), "r", []queue.Job{
		trial("new1"), trial("done"), trial("waiting"), trial("new2"), trial("delayed"), trial("flying"), trial("new3"),
	})
	if want := (queue.Published{Stored: 3, Skipped: 4}); err != nil || got != want {
		t.Fatalf("published %+v, %v, want %+v", got, err, want)
	}
	if err := flying.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 4 {
		l := lease(t, q, "a")
		seen[l.Job().Trial] = true
		if err := l.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !seen["new1"] || !seen["new2"] || !seen["new3"] || !seen["waiting"] {
		t.Fatalf("leased %v, want the new ones and the one that waited", seen)
	}
}
