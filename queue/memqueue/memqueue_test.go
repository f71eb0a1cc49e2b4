// SPDX-License-Identifier: Apache-2.0

package memqueue_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/memqueue"
	"github.com/tidemill/tidemill/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) *queuetest.Harness {
		const ttl = 300 * time.Millisecond
		broker, err := memqueue.NewBroker(memqueue.Config{LeaseTTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		open := func(t *testing.T) queue.Queue {
			q := broker.Open()
			t.Cleanup(func() { _ = q.Close() })
			return q
		}
		return &queuetest.Harness{Queue: open(t), Open: open, TTL: ttl, Quiet: 60 * time.Millisecond}
	})
}

func TestConfigRefusesNonsense(t *testing.T) {
	for _, cfg := range []memqueue.Config{{LeaseTTL: -1}, {DedupeWindow: -1}} {
		if _, err := memqueue.New(cfg); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("New(%+v) error = %v, want ErrInvalid", cfg, err)
		}
	}
}

// With a clock that stands still between events the times are exact.
func TestTimesAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := memqueue.New(memqueue.Config{LeaseTTL: time.Minute, DedupeWindow: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		req := queue.Request{Worker: "w", Offers: []string{"a"}, Nonce: "0123456789abcdef"}
		run := queue.Run{ID: "r", Class: "a", Limits: queue.Limits{MaxStartsPerSecond: 0.25}}
		if err := q.OpenRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		first := queue.Job{ID: queue.ID{Trial: "a", Epoch: 1, Release: 1}}
		second := queue.Job{ID: queue.ID{Trial: "b", Epoch: 1, Release: 1}}
		if _, err := q.Publish(t.Context(), "r", []queue.Job{first, second}); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		lease := func(trial string, after time.Duration) queue.Lease {
			t.Helper()
			l, err := q.Lease(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if got := time.Since(begun); l.Job().Trial != trial || got != after {
				t.Fatalf("trial %s after %v, want %s after %v", l.Job().Trial, got, trial, after)
			}
			return l
		}
		abandoned := lease("a", 0)
		b := lease("b", 4*time.Second)
		if err := b.Retry(t.Context(), 10*time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		again := lease("a", time.Minute)
		if err := abandoned.Extend(t.Context()); !errors.Is(err, queue.ErrLost) {
			t.Fatalf("extend of the old holder: %v, want ErrLost", err)
		}
		if err := again.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := lease("b", 10*time.Minute+4*time.Second).Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Within the window the id is known, after it it is not.
		for _, tt := range []struct {
			wait   time.Duration
			stored int
		}{{0, 0}, {2 * time.Hour, 1}} {
			time.Sleep(tt.wait)
			got, err := q.Publish(t.Context(), "r", []queue.Job{first})
			if err != nil || got.Stored != tt.stored {
				t.Fatalf("stored %d after %v, error %v, want %d", got.Stored, tt.wait, err, tt.stored)
			}
		}
	})
}
