// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// unasked is how long a slot sleeps where nobody wakes it: until after the test.
func unasked(c *natsqueue.Config) { c.ProbeEvery, c.LeaseTTL = time.Hour, time.Minute }

// asleep starts slots that wait for a job, and returns where their leases come.
func asleep(t *testing.T, slots int, values ...queue.Queue) <-chan queue.Lease {
	t.Helper()
	leases := make(chan queue.Lease, slots)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	for i := range slots {
		wg.Go(func() {
			l, err := values[i%len(values)].Lease(ctx, ask("a"))
			if err == nil {
				leases <- l
			} else if ctx.Err() == nil {
				t.Errorf("a slot that slept: %v", err)
			}
		})
	}
	// Nothing tells when a slot has gone to sleep. One that has not finds its job by looking,
	// and then this shows less.
	time.Sleep(150 * time.Millisecond)
	return leases
}

func doneWith(t *testing.T, leases <-chan queue.Lease, n int) {
	t.Helper()
	for range n {
		select {
		case l := <-leases:
			if err := l.Done(t.Context()); err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("nobody woke the slot")
		}
	}
}

// A slot that sleeps is woken by whatever gives it work, without ever asking by itself.
// JetStream alone would not: a resumed consumer lets pulls that wait sleep on.
func TestSleepingSlotsAreWoken(t *testing.T) {
	s := startServer(t)
	near, far := open(t, s, unasked), open(t, s, unasked)
	must := func(doing string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", doing, err)
		}
	}
	release := 0
	publish := func(q queue.Queue, names ...string) {
		t.Helper()
		release++
		var jobs []queue.Job
		for _, n := range names {
			jobs = append(jobs, queue.Job{ID: queue.ID{Trial: n, Epoch: 1, Release: release}})
		}
		_, err := q.Publish(t.Context(), "r", jobs)
		must("publish", err)
	}
	fill(t, near)
	t.Run("a job", func(t *testing.T) {
		leases := asleep(t, 1, far)
		publish(near, "a")
		doneWith(t, leases, 1)
	})
	t.Run("many jobs at once", func(t *testing.T) {
		leases := asleep(t, 12, near, far)
		publish(near, fiftyJobs()[:12]...)
		doneWith(t, leases, 12)
	})
	t.Run("a run that is resumed", func(t *testing.T) {
		must("pause", near.PauseRun(t.Context(), "r"))
		publish(near, "a", "b")
		leases := asleep(t, 2, far)
		must("resume", near.ResumeRun(t.Context(), "r"))
		doneWith(t, leases, 2)
	})
	t.Run("a run that comes", func(t *testing.T) {
		closed, err := near.CloseRun(t.Context(), "r", func(context.Context) (bool, error) { return true, nil })
		must("close", err)
		if !closed {
			t.Fatal("the run is not closed")
		}
		leases := asleep(t, 1, far)
		fill(t, near)
		publish(near, "a")
		doneWith(t, leases, 1)
	})
	for _, after := range []time.Duration{0, 300 * time.Millisecond} {
		t.Run(fmt.Sprintf("a job that was put back for %s", after), func(t *testing.T) {
			publish(near, "a")
			l := lease(t, near, "a")
			leases := asleep(t, 1, far)
			must("retry", l.Retry(t.Context(), after, nil))
			doneWith(t, leases, 1)
			release++ // the retry took one
		})
	}
	t.Run("a place below the cap", func(t *testing.T) {
		capped := anyRun
		capped.Limits.MaxInFlight = 1
		must("open run", near.OpenRun(t.Context(), capped))
		publish(near, "a", "b")
		l := lease(t, near, "a")
		leases := asleep(t, 1, far)
		must("done", l.Done(t.Context()))
		doneWith(t, leases, 1)
	})
}

// The server may fire a schedule twice, when it is killed while it does. The trial is still
// held by one at a time, and the second copy comes when the first is done: then whoever
// gets it finds the commit.
func TestScheduleThatFiresTwice(t *testing.T) {
	s := startServer(t)
	q, other := open(t, s), open(t, s)
	fill(t, q, "a")
	if err := lease(t, q, "a").Retry(t.Context(), time.Millisecond, []byte("again")); err != nil {
		t.Fatal(err)
	}
	held := lease(t, q, "a")
	js, err := jetstream.New(connect(t, s))
	if err != nil {
		t.Fatal(err)
	}
	// What a schedule emits has no message id, so that nothing takes it for a duplicate.
	m := nats.NewMsg("tidemill.trials.default.a.r.a")
	m.Data = []byte("again")
	m.Header.Set("Tidemill-Job", held.Job().ID.String())
	if _, err := js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTTL)
	defer cancel()
	for ctx.Err() == nil {
		if err := held.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		step, cancel := context.WithTimeout(ctx, testTTL/5)
		if l, err := other.Lease(step, ask("b")); err == nil {
			t.Fatalf("%s was leased while its trial is held", l.Job().ID)
		}
		cancel()
	}
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := lease(t, other, "b")
	if second.Job().ID != held.Job().ID || second.Fence() <= held.Fence() {
		t.Errorf("leased %s with fence %d, want %s with more than %d", second.Job().ID, second.Fence(), held.Job().ID, held.Fence())
	}
	if err := second.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := q.Stats(t.Context(), "r"); err != nil || got != (queue.Stats{}) {
		t.Errorf("stats = %+v, %v, want nothing left", got, err)
	}
}

// A run at its cap parks pulls at the server, which takes so many of them and refuses the
// next. Slots see no error of either, and get their jobs in turn.
func TestManySlotsAtACap(t *testing.T) {
	const slots = 700
	s := startServer(t)
	q, other := open(t, s), open(t, s)
	capped := anyRun
	capped.Limits.MaxInFlight = 1
	if err := q.OpenRun(t.Context(), capped); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Publish(t.Context(), "r", []queue.Job{trial("a"), trial("b"), trial("c")}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	leases := make(chan queue.Lease, 3)
	ended := make(chan error, slots)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range slots {
		v := []queue.Queue{q, other}[i%2]
		wg.Go(func() {
			l, err := v.Lease(ctx, ask("a"))
			if err == nil {
				leases <- l
			}
			ended <- err
		})
	}
	for range 3 {
		select {
		case l := <-leases:
			if err := l.Done(t.Context()); err != nil {
				t.Error(err)
			}
		case <-time.After(60 * time.Second):
			t.Fatal("a job was never handed out")
		}
	}
	cancel()
	for range slots {
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("a slot at a full run: %v", err)
		}
	}
}
