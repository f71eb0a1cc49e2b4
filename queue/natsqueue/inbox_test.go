// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tidemill/tidemill/queue"
)

// beside opens one more run with jobs, beside that of [bench].
func beside(t *testing.T, q *Queue, run queue.Run, names ...string) openRun {
	t.Helper()
	if err := q.OpenRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := q.Publish(t.Context(), run.ID, []queue.Job{{ID: queue.ID{Trial: n, Epoch: 1, Release: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	return openRun{Run: run.WithDefaults()}
}

// Pulls one after the other share an inbox, whatever their runs, and Close leaves none on a
// connection that is its caller's.
func TestPullsShareAnInbox(t *testing.T) {
	q, one := bench(t, "a", "b", "c")
	two := beside(t, q, queue.Run{ID: "two", Class: "a"}, "a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		for _, r := range []openRun{one, two} {
			if d := pullOne(t, q, r); d.Run != r.ID || d.Trial != name {
				t.Fatalf("a pull of run %s: %+v, want its job %s", r.ID, d, name)
			}
		}
	}
	if _, a, err := q.pull(t.Context(), one); a != empty || err != nil {
		t.Errorf("a pull of an empty run: %v, %v", a, err)
	}
	if free := q.inboxes.free; len(free) != 1 || free[0].pulls != 7 {
		t.Errorf("%d inboxes for pulls one after the other, want 1 for all 7", len(free))
	}
	in, err := q.inboxes.take() // as a pull has it that is under way
	if err != nil {
		t.Fatal(err)
	}
	spare, err := q.inboxes.take()
	if err != nil {
		t.Fatal(err)
	}
	q.inboxes.put(spare, served)
	_ = q.Close()
	q.inboxes.put(in, served)
	if in.sub.IsValid() || spare.sub.IsValid() {
		t.Error("an inbox is subscribed after Close")
	}
}

// What is said to an earlier pull answers no later one.
func TestStrayAnswers(t *testing.T) {
	q, r := bench(t, "a", "b")
	pullOne(t, q, r)
	in := q.inboxes.free[0]
	for range strays {
		stray := nats.NewMsg(in.reply)
		stray.Header.Set("Status", "409")
		stray.Header.Set("Description", "Leadership Change")
		if err := q.nc.PublishMsg(stray); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if d := pullOne(t, q, r); d.Trial != "b" {
		t.Errorf("pulled %s, want b", d.Trial)
	}
	if in != q.inboxes.free[0] {
		t.Error("the inbox with the strays was not used")
	}
}

// Where nobody answers for the consumer, or its leader moves, the inbox goes too.
func TestInboxWithoutALastWord(t *testing.T) {
	q, r := bench(t)
	if err := q.dropConsumer(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	if _, a, err := q.pull(t.Context(), r); a != missing || err != nil {
		t.Fatalf("a pull without a consumer: %v, %v", a, err)
	}
	if got := len(q.inboxes.free); got != 0 {
		t.Errorf("%d inboxes are kept for the next pull, want none", got)
	}
}

// An inbox to which a job may still come is not used again: at its cap the server keeps the
// pull, and answers when there is room.
func TestInboxOfAPullAtACap(t *testing.T) {
	q, _ := bench(t)
	r := beside(t, q, queue.Run{ID: "capped", Class: "a", Limits: queue.Limits{MaxInFlight: 1}}, "a", "b")
	held := pullOne(t, q, r)
	if _, a, err := q.pull(t.Context(), r); a != full || err != nil {
		t.Fatalf("a pull at the cap: %v, %v, want full", a, err)
	}
	if got := len(q.inboxes.free); got != 0 {
		t.Fatalf("%d inboxes are kept for the next pull, want none", got)
	}
	if err := q.ack(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if d := pullOne(t, q, r); d.Trial != "b" || d.again {
		t.Errorf("pull when there is room = %+v, want b for the first time", d)
	}
}

// A job that comes to the pull of another run would be worked on as that one's. It is handed
// back, and the pull waits for its own.
func TestJobOfAnotherRun(t *testing.T) {
	q, one := bench(t, "a")
	two := beside(t, q, queue.Run{ID: "two", Class: "a"}, "b")
	in, err := q.inboxes.take()
	if err != nil {
		t.Fatal(err)
	}
	if err := q.nc.PublishRequest(apiPrefix+"CONSUMER.MSG.NEXT."+trialsStream+".two", in.next(), pullRequest); err != nil {
		t.Fatal(err)
	}
	stray := <-in.answers
	in.answers <- stray
	q.inboxes.put(in, served)
	if d := pullOne(t, q, one); d.Run != one.ID || d.Trial != "a" {
		t.Fatalf("pulled %+v, want the run's own job", d)
	}
	if in != q.inboxes.free[0] {
		t.Error("the inbox with the stray was not used")
	}
	// What is handed back needs no answer, and comes a moment later.
	for end := time.Now().Add(10 * time.Second); ; {
		d, a, err := q.pull(t.Context(), two)
		if err != nil || time.Now().After(end) {
			t.Fatalf("it was not handed back: %v", err)
		}
		if a != served {
			continue
		}
		if d.Trial != "b" || !d.again {
			t.Errorf("pull = %+v, want b once more", d)
		}
		return
	}
}
