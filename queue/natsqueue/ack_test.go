// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"testing"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// A plain ack can be lost when its sender goes away right after it, and nobody notices.
// Done asks for an answer: it returns when the job is gone, and nothing comes back.
func TestDoneIsNotLostAtClose(t *testing.T) {
	s := startServer(t)
	names := fiftyJobs()
	fill(t, open(t, s), names...)
	acks, err := connect(t, s).SubscribeSync("$JS.ACK.>")
	if err != nil {
		t.Fatal(err)
	}
	for range len(names) / 10 {
		nc := connect(t, s)
		q := open(t, s)
		for range 10 {
			if err := lease(t, q, "a").Done(t.Context()); err != nil {
				t.Fatal(err)
			}
			for {
				m, err := acks.NextMsg(10 * time.Second)
				if err != nil {
					t.Fatalf("no ack was seen: %v", err)
				}
				if string(m.Data) != "+ACK" {
					continue // a heartbeat
				}
				if m.Reply == "" {
					t.Fatal("an ack was sent that asks for no answer")
				}
				break
			}
		}
		nc.Close()
		if err := q.Close(); err != nil { // at once
			t.Fatal(err)
		}
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := open(t, s).Stats(t.Context(), "r"); err != nil || got != (queue.Stats{}) {
		t.Fatalf("stats = %+v, %v, want nothing left", got, err)
	}
}
