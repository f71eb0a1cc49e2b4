// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
	"github.com/tidemill/tidemill/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTTL leaves room for a stall of a loaded machine under the race detector.
const testTTL = 900 * time.Millisecond

func testConfig() natsqueue.Config {
	return natsqueue.Config{
		Store:       "11111111-2222-3333-4444-555555555555",
		LeaseTTL:    testTTL,
		LeaseSettle: -1,
		ProbeEvery:  200 * time.Millisecond,
	}
}

func startServer(t testing.TB) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func connect(t testing.TB, s *embedded.Server, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := s.Connect(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// open gives a value on a connection of its own, as another process would have.
func open(t testing.TB, s *embedded.Server, change ...func(*natsqueue.Config)) *natsqueue.Queue {
	t.Helper()
	cfg := testConfig()
	for _, c := range change {
		c(&cfg)
	}
	q, err := natsqueue.Open(t.Context(), connect(t, s), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q
}

func TestConformance(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) *queuetest.Harness {
		s := startServer(t)
		return &queuetest.Harness{
			Queue: open(t, s),
			Open:  func(t *testing.T) queue.Queue { return open(t, s) },
			TTL:   testTTL,
			// The server schedules by its wall clock, which may be slewed.
			Early: 5 * time.Millisecond,
			Restart: func(t *testing.T) {
				if err := s.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// nothingLeft says that a run is settled.
func nothingLeft(context.Context) (bool, error) { return true, nil }
