// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

var anyRun = queue.Run{ID: "r", Class: "a"}

var asked atomic.Uint64

// ask is a request with a nonce that nobody else has.
func ask(nonce string) queue.Request {
	return queue.Request{Worker: "w", Offers: []string{"a"}, Nonce: fmt.Sprintf("%s%016x", nonce, asked.Add(1))}
}

func trial(name string) queue.Job {
	return queue.Job{ID: queue.ID{Trial: name, Epoch: 1, Release: 1}}
}

// fill opens the run and puts jobs in.
func fill(t *testing.T, q queue.Queue, names ...string) {
	t.Helper()
	if err := q.OpenRun(t.Context(), anyRun); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := q.Publish(t.Context(), "r", []queue.Job{trial(n)}); err != nil {
			t.Fatal(err)
		}
	}
}

func lease(t *testing.T, q queue.Queue, nonce string) queue.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, err := q.Lease(ctx, ask(nonce))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// persist repeats a call until the broker answers.
func persist(t *testing.T, doing string, call func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := call()
		if err == nil {
			return
		}
		if !errors.Is(err, queue.ErrUnreachable) || ctx.Err() != nil {
			t.Fatalf("%s: %v", doing, err)
		}
	}
}

func quick(c *natsqueue.Config) { c.CallTimeout = 300 * time.Millisecond }

// While the server is away every call says so within its time, and nothing of
// what was given up is sent when it is back.
func TestOutageIsUnreachable(t *testing.T) {
	s := startServer(t)
	q := open(t, s, quick)
	fill(t, q, "held", "other")
	held := lease(t, q, "a")
	s.Shutdown()
	for doing, call := range map[string]func() error{
		"extend":  func() error { return held.Extend(t.Context()) },
		"done":    func() error { return held.Done(t.Context()) },
		"retry":   func() error { return held.Retry(t.Context(), 0, nil) },
		"bury":    func() error { return held.Bury(t.Context(), "why") },
		"lease":   func() error { _, err := q.Lease(t.Context(), ask("b")); return err },
		"open":    func() error { return q.OpenRun(t.Context(), anyRun) },
		"pause":   func() error { return q.PauseRun(t.Context(), "r") },
		"purge":   func() error { _, err := q.PurgeRun(t.Context(), "r"); return err },
		"close":   func() error { _, err := q.CloseRun(t.Context(), "r", nothingLeft); return err },
		"publish": func() error { _, err := q.Publish(t.Context(), "r", []queue.Job{trial("x")}); return err },
		"runs":    func() error { _, err := q.ListRuns(t.Context()); return err },
		"stats":   func() error { _, err := q.Stats(t.Context(), "r"); return err },
		"dead":    func() error { _, err := q.DeadLetters(t.Context(), "r", 0); return err },
	} {
		if err := call(); !errors.Is(err, queue.ErrUnreachable) {
			t.Errorf("%s while the server is down: %v, want ErrUnreachable", doing, err)
		}
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	persist(t, "extend", func() error { return held.Extend(t.Context()) })
	var got queue.Stats
	persist(t, "stats", func() (err error) { got, err = q.Stats(t.Context(), "r"); return err })
	if want := (queue.Stats{Pending: 1, InFlight: 1}); got != want {
		t.Fatalf("stats after the outage = %+v, want %+v as before it", got, want)
	}
	persist(t, "done", func() error { return held.Done(t.Context()) })
}

// An outage that is longer than the lease costs no running trial: nobody takes
// over before the owner had time to come back, which its value does by itself.
func TestOwnerComesBackFirst(t *testing.T) {
	const ttl = 2 * time.Second
	s := startServer(t)
	settle := func(c *natsqueue.Config) { c.LeaseTTL, c.LeaseSettle = ttl, ttl/2 }
	owner, other := open(t, s, settle), open(t, s, settle)
	fill(t, owner, "held")
	held := lease(t, owner, "a")
	s.Shutdown()
	time.Sleep(ttl + ttl/10) // the lease has to run out for real
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Long enough to take over what nobody renewed, too short to take over what
	// was renewed.
	ctx, cancel := context.WithTimeout(t.Context(), ttl*8/10)
	defer cancel()
	for ctx.Err() == nil {
		if l, err := other.Lease(ctx, ask("b")); err == nil {
			t.Fatalf("%s was taken over while its owner lives", l.Job().ID)
		}
	}
	select {
	case <-held.Revoked():
		t.Fatal("the owner's lease was revoked")
	default:
	}
	persist(t, "done", func() error { return held.Done(t.Context()) })
}

// The same with an owner that is dead: then its time to come back ends.
func TestDeadOwnerIsReplacedAfterSettling(t *testing.T) {
	s := startServer(t)
	owner := open(t, s)
	other := open(t, s, func(c *natsqueue.Config) { c.LeaseSettle = testTTL })
	fill(t, owner, "held")
	dead := lease(t, owner, "a")
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	var l queue.Lease
	persist(t, "lease", func() (err error) { l, err = other.Lease(t.Context(), ask("b")); return err })
	if l.Fence() <= dead.Fence() {
		t.Fatalf("fence %d, want more than %d", l.Fence(), dead.Fence())
	}
	if err := l.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// wipe deletes every stream, as if the server's disk had been replaced.
func wipe(t *testing.T, s *embedded.Server) {
	t.Helper()
	js, err := jetstream.New(connect(t, s))
	if err != nil {
		t.Fatal(err)
	}
	names := js.StreamNames(t.Context())
	for name := range names.Name() {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := names.Err(); err != nil {
		t.Fatal(err)
	}
}

// Everything can be deleted under a running worker. It carries on, and what is put
// in anew is handed out; but not the trial that it works on.
func TestWipedServer(t *testing.T) {
	s := startServer(t)
	q, other := open(t, s), open(t, s)
	fill(t, q, "held", "waiting")
	held := lease(t, q, "a")
	wipe(t, s)
	persist(t, "extend", func() error { return held.Extend(t.Context()) })
	select {
	case <-held.Revoked():
		t.Fatal("the lease was revoked by the wipe")
	default:
	}
	fill(t, other, "held", "waiting")
	l := lease(t, other, "b")
	if got := l.Job().Trial; got != "waiting" {
		t.Fatalf("leased trial %s, want the one that nobody works on", got)
	}
	if l.Fence() <= held.Fence() {
		t.Fatalf("fence %d after the wipe, want more than %d", l.Fence(), held.Fence())
	}
	// The old delivery names a message that is gone, and must not touch any other.
	if err := held.Done(t.Context()); err != nil {
		t.Fatalf("done after the wipe: %v", err)
	}
	again := lease(t, other, "c")
	if got := again.Job().Trial; got != "held" {
		t.Fatalf("leased trial %s, want the one whose holder is done", got)
	}
	for _, l := range []queue.Lease{l, again} {
		if err := l.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A consumer that an operator deleted is made anew; what was in flight stays
// with its holder, although the server has forgotten the delivery.
func TestDeletedConsumer(t *testing.T) {
	s := startServer(t)
	q, other := open(t, s, quick), open(t, s)
	fill(t, q, "held", "waiting")
	held := lease(t, q, "a")
	js, err := jetstream.New(connect(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteConsumer(t.Context(), "TRIALS", "r"); err != nil {
		t.Fatal(err)
	}
	l := lease(t, other, "b")
	if got := l.Job().Trial; got != "waiting" {
		t.Fatalf("leased trial %s, want the one that nobody works on", got)
	}
	if err := held.Done(t.Context()); err != nil {
		t.Fatalf("done of a delivery that the server forgot: %v", err)
	}
	if err := l.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := q.Stats(t.Context(), "r")
	if err != nil || got != (queue.Stats{}) {
		t.Fatalf("stats = %+v, %v, want nothing left", got, err)
	}
}

// A delivery that the server has forgotten is acked by nobody's answer: then its
// message is deleted by number.
func TestForgottenDelivery(t *testing.T) {
	s := startServer(t)
	q := open(t, s, quick)
	fill(t, q, "held", "waiting")
	held := lease(t, q, "a")
	js, err := jetstream.New(connect(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteConsumer(t.Context(), "TRIALS", "r"); err != nil {
		t.Fatal(err)
	}
	if err := q.PauseRun(t.Context(), "r"); err != nil { // makes it anew, and it delivers nothing
		t.Fatal(err)
	}
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := q.Stats(t.Context(), "r")
	if want := (queue.Stats{Pending: 1}); err != nil || got != want {
		t.Fatalf("stats = %+v, %v, want %+v", got, err, want)
	}
}

// Who lost a lease says nothing to the server any more.
func TestLoserIsSilent(t *testing.T) {
	s := startServer(t)
	q, other := open(t, s), open(t, s)
	fill(t, q, "a")
	stale := lease(t, q, "a")
	fresh := lease(t, other, "b")
	select {
	case <-stale.Revoked(): // the new holder told
	case <-time.After(30 * time.Second):
		t.Fatal("the former holder was never told")
	}
	nc := connect(t, s)
	said := make(chan *nats.Msg, 64)
	for _, subject := range []string{"$JS.ACK.>", "tidemill.>", "$KV.tidemill-leases.>"} {
		if _, err := nc.ChanSubscribe(subject, said); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for doing, call := range map[string]func() error{
		"extend": func() error { return stale.Extend(t.Context()) },
		"done":   func() error { return stale.Done(t.Context()) },
		"retry":  func() error { return stale.Retry(t.Context(), 0, nil) },
		"bury":   func() error { return stale.Bury(t.Context(), "why") },
	} {
		if err := call(); !errors.Is(err, queue.ErrLost) {
			t.Errorf("%s of the former holder: %v, want ErrLost", doing, err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-said:
		t.Fatalf("the former holder said %q on %s", m.Data, m.Subject)
	default:
	}
	if err := fresh.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Who lost a lease and was not told finds out by the swap, and then says nothing
// but that.
func TestLoserFindsOutByTheSwap(t *testing.T) {
	s := startServer(t)
	nc := connect(t, s)
	q, err := natsqueue.Open(t.Context(), nc, testConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	fill(t, q, "a")
	stale := lease(t, q, "a")
	// Take over by hand, as a value would that could not tell.
	js, err := jetstream.New(connect(t, s))
	if err != nil {
		t.Fatal(err)
	}
	leases, err := js.Stream(t.Context(), "KV_tidemill-leases")
	if err != nil {
		t.Fatal(err)
	}
	key := strings.TrimSuffix(leases.CachedInfo().Config.Subjects[0], ">") + "r.a"
	if _, err := js.Publish(t.Context(), key, []byte(`{"nonce":"ffff","ttl_ms":60000}`)); err != nil {
		t.Fatal(err)
	}
	watcher := connect(t, s)
	acks, err := watcher.SubscribeSync("$JS.ACK.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := watcher.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := stale.Done(t.Context()); !errors.Is(err, queue.ErrLost) {
		t.Fatalf("done: %v, want ErrLost", err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := watcher.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := acks.Pending(); n != 0 {
		t.Fatalf("the loser sent %d acks", n)
	}
	select {
	case <-stale.Revoked():
	default:
		t.Fatal("not revoked although it knows")
	}
}

// Ids are remembered beyond a purge: the next release must be stored, and is.
func TestDedupeOutlivesPurge(t *testing.T) {
	s := startServer(t)
	q := open(t, s)
	fill(t, q, "a")
	if _, err := q.PurgeRun(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	for release, want := range []queue.Published{1: {Skipped: 1}, 2: {Stored: 1}} {
		if release == 0 {
			continue
		}
		j := trial("a")
		j.Release = release
		got, err := q.Publish(t.Context(), "r", []queue.Job{j})
		if err != nil || got != want {
			t.Errorf("publish release %d after a purge = %+v, %v, want %+v", release, got, err, want)
		}
	}
}

func TestForeignMessageIsNamed(t *testing.T) {
	s := startServer(t)
	q := open(t, s)
	fill(t, q)
	js, err := jetstream.New(connect(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "tidemill.trials.default.a.r.x", nil); err != nil {
		t.Fatal(err)
	}
	_, err = q.Lease(t.Context(), ask("a"))
	if err == nil || !strings.Contains(err.Error(), "tidemill.trials.default.a.r.x") {
		t.Fatalf("lease of a foreign message: %v, want an error that names its subject", err)
	}
}
