// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"testing"

	"github.com/tidemill/tidemill/queue"
)

func settled(context.Context) (bool, error) { return true, nil }

// remains lists what the server has of runs. The marks of closed runs are for watchers.
func remains(t *testing.T, q *Queue) (list []string) {
	t.Helper()
	consumers, err := q.countByConsumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for run := range consumers {
		list = append(list, "consumer "+run)
	}
	for stream, filter := range map[string]string{
		trialsStream: "tidemill.>", leasesStream: "$KV.>", startsStream: "$KV.>",
	} {
		n, err := q.countMessages(t.Context(), stream, filter)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			list = append(list, stream)
		}
	}
	runs, err := q.ListRuns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		list = append(list, "entry "+r.ID)
	}
	return list
}

// Nothing of a run stays on the server when it is closed.
func TestClosingLeavesNothing(t *testing.T) {
	q, r := bench(t, "a", "b")
	r.Limits.MaxStartsPerSecond = 1000
	if err := q.OpenRun(t.Context(), r.Run); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := q.Lease(t.Context(), request("0123456789abcdef"))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := remains(t, q); len(got) != 4 { // a consumer, leases, starts, an entry
		t.Fatalf("before: %q", got)
	}
	if closed, err := q.CloseRun(t.Context(), "r", settled); err != nil || !closed {
		t.Fatalf("closed %v, %v", closed, err)
	}
	if got := remains(t, q); len(got) > 0 {
		t.Errorf("remains %q", got)
	}
}

// A process may end between two steps of closing a run. The next one that closes it goes
// on; until then it is closed for all others.
func TestClosingIsFinished(t *testing.T) {
	q, r := bench(t)
	c := closing{q: q}
	var err error
	if c.run, c.revision, err = q.readRun(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if begun, err := c.begin(t.Context(), settled); err != nil || !begun {
		t.Fatalf("begun %v, %v", begun, err)
	}
	if _, err := q.Publish(t.Context(), "r", []queue.Job{{ID: queue.ID{Trial: "a", Epoch: 1, Release: 1}}}); !errors.Is(err, queue.ErrUnknownRun) {
		t.Errorf("publish: %v, want ErrUnknownRun", err)
	}
	if closed, err := q.CloseRun(t.Context(), "r", settled); err != nil || !closed {
		t.Fatalf("closed %v, %v", closed, err)
	}
	if got := remains(t, q); len(got) > 0 {
		t.Errorf("remains %q", got)
	}
	if err := q.OpenRun(t.Context(), r.Run); err != nil {
		t.Fatal(err)
	}
}

// A run that is opened while the last of it is removed keeps what is put in, and is
// handed out.
func TestOpenedWhileItIsClosed(t *testing.T) {
	q, r := bench(t)
	c := closing{q: q}
	var err error
	if c.trials, err = q.lastSeq(t.Context(), trialsStream); err != nil {
		t.Fatal(err)
	}
	if c.leases, err = q.lastSeq(t.Context(), leasesStream); err != nil {
		t.Fatal(err)
	}
	if c.run, c.revision, err = q.readRun(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if begun, err := c.begin(t.Context(), settled); err != nil || !begun {
		t.Fatalf("begun %v, %v", begun, err)
	}
	if err := q.OpenRun(t.Context(), r.Run); err != nil {
		t.Fatal(err)
	}
	jobs := []queue.Job{{ID: queue.ID{Trial: "a", Epoch: 2, Release: 1}}, {ID: queue.ID{Trial: "b", Epoch: 2, Release: 1}}}
	if _, err := q.Publish(t.Context(), "r", jobs); err != nil {
		t.Fatal(err)
	}
	held, err := q.Lease(t.Context(), request("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	if closed, err := c.finish(t.Context()); err != nil || closed {
		t.Fatalf("closed %v, %v; want it open", closed, err)
	}
	if err := held.Done(t.Context()); err != nil {
		t.Errorf("the lease of before: %v", err)
	}
	l, err := q.Lease(t.Context(), request("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Done(t.Context()); err != nil {
		t.Error(err)
	}
}
