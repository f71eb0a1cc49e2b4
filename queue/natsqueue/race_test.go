// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

// bench is a value with one open run, for tests that need to get between two
// steps.
func bench(t *testing.T, names ...string) (*Queue, openRun) {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), RelaxedSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
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
	r := openRun{Run: queue.Run{ID: "r", Class: "a"}.WithDefaults()}
	if err := q.OpenRun(t.Context(), r.Run); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := q.Publish(t.Context(), "r", []queue.Job{{ID: queue.ID{Trial: n, Epoch: 1, Release: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	return q, r
}

func pullOne(t *testing.T, q *Queue, r openRun) *delivery {
	t.Helper()
	d, a, err := q.pull(t.Context(), r)
	if err != nil || a != served {
		t.Fatalf("pull: answer %v, %v, want a job", a, err)
	}
	return d
}

func request(nonce string) queue.Request {
	return queue.Request{Worker: "w", Offers: []string{"a"}, Nonce: nonce}.WithDefaults()
}

// A purge between the pull and the lease leaves nobody running the job.
func TestPurgeBetweenPullAndLease(t *testing.T) {
	for _, told := range []bool{true, false} {
		q, r := bench(t, "a", "b")
		d := pullOne(t, q, r)
		if _, err := q.PurgeRun(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		for told && q.board.purged("r") < d.seq {
			<-q.board.change()
		}
		l, err := q.claim(t.Context(), r, d, request("n"))
		if err != nil {
			t.Fatal(err)
		}
		if l == nil {
			continue
		}
		if told {
			t.Fatal("leased a job although its purge was known")
		}
		select {
		case <-l.Revoked():
		case <-time.After(30 * time.Second):
			t.Fatal("a lease of a purged job was never revoked")
		}
	}
}

// The same with a run that is closed.
func TestCloseBetweenPullAndLease(t *testing.T) {
	q, r := bench(t, "a")
	d := pullOne(t, q, r)
	if _, err := q.PurgeRun(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	closed, err := q.CloseRun(t.Context(), "r", func(context.Context) (bool, error) { return true, nil })
	if err != nil || !closed {
		t.Fatalf("closed %v, %v", closed, err)
	}
	l, err := q.claim(t.Context(), r, d, request("n"))
	if err != nil || l == nil {
		return
	}
	select {
	case <-l.Revoked():
	case <-time.After(30 * time.Second):
		t.Fatal("a lease of a closed run was never revoked")
	}
}

// A write whose answer got lost was written all the same. Its nonce tells.
func TestOwnWriteIsRecognised(t *testing.T) {
	q, r := bench(t, "a")
	d := pullOne(t, q, r)
	mine := holding{Nonce: "n", TTLMillis: 60_000, Seq: d.seq}
	if _, err := q.book.write(t.Context(), q.book.current(), "r.a", mine, 0); err != nil {
		t.Fatal(err)
	}
	l, err := q.claim(t.Context(), r, d, request("n"))
	if err != nil || l == nil {
		t.Fatalf("claim = %v, %v, want the lease that was written before", l, err)
	}
	if _, err := q.book.write(t.Context(), q.book.current(), "r.a", mine, l.revision); err != nil {
		t.Fatal(err)
	}
	if err := l.Extend(t.Context()); err != nil {
		t.Fatalf("extend after a write whose answer was lost: %v", err)
	}
	if err := l.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The same entry with another nonce is somebody else's.
func TestLivingLeaseIsRespected(t *testing.T) {
	q, r := bench(t, "a")
	d := pullOne(t, q, r)
	other := holding{Nonce: "other", TTLMillis: 60_000, Seq: d.seq}
	if _, err := q.book.write(t.Context(), q.book.current(), "r.a", other, 0); err != nil {
		t.Fatal(err)
	}
	if l, err := q.claim(t.Context(), r, d, request("n")); l != nil || err != nil {
		t.Fatalf("claim = %v, %v, want none", l, err)
	}
	// One that is ending is in nobody's way, once there is a newer job.
	other.Ending = true
	e, err := q.book.read(t.Context(), q.book.current(), "r.a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.book.write(t.Context(), q.book.current(), "r.a", other, e.revision); err != nil {
		t.Fatal(err)
	}
	if l, err := q.claim(t.Context(), r, d, request("n")); l != nil || err != nil {
		t.Fatalf("claim of the ending job itself = %v, %v, want none", l, err)
	}
	newer := *d
	newer.seq++
	l, err := q.claim(t.Context(), r, &newer, request("n"))
	if err != nil || l == nil {
		t.Fatalf("claim of a newer job = %v, %v, want a lease", l, err)
	}
	if err := l.prove(t.Context(), false); err != nil && !errors.Is(err, queue.ErrLost) {
		t.Fatal(err)
	}
}

// A pull that is given up loses no message: whoever asks next gets it at once.
func TestPullGivenUp(t *testing.T) {
	q, r := bench(t)
	r.Limits.MaxInFlight = 1
	if err := q.OpenRun(t.Context(), r.Run); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"a", "b"} {
		if _, err := q.Publish(t.Context(), "r", []queue.Job{{ID: queue.ID{Trial: n, Epoch: 1, Release: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	first := pullOne(t, q, r)
	for range 5 {
		if d, a, err := q.pull(t.Context(), r); d != nil || a != full || err != nil {
			t.Fatalf("pull at the cap = %v, %v, %v, want full", d, a, err)
		}
	}
	if err := q.ack(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if d := pullOne(t, q, r); d.Trial != "b" {
		t.Fatalf("pulled %s, want b, which no earlier pull may have taken", d.Trial)
	}
}
