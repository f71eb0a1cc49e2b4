// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/queuetest"
)

// The contract holds over the network, with a server of its own that is restarted by
// kill -9. TIDEMILL_TEST_NATS_URL names another one, which isn't restarted.
func TestConformanceOverTheNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute; not with -short")
	}
	url := os.Getenv(testenv.NATSVariable)
	var restart func(*testing.T)
	if url == "" {
		node := testenv.NATS(t)
		url = node.URL()
		restart = func(*testing.T) { node.Kill(); node.Start() }
	}
	queuetest.Run(t, func(t *testing.T) *queuetest.Harness {
		wipeURL(t, url)
		dial := func(t *testing.T) *natsqueue.Queue {
			q, err := natsqueue.Dial(t.Context(), url, testConfig(), nats.ReconnectWait(50*time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = q.Close() })
			return q
		}
		return &queuetest.Harness{
			Queue: dial(t), Open: func(t *testing.T) queue.Queue { return dial(t) },
			TTL: testTTL, Early: 5 * time.Millisecond, Restart: restart,
		}
	})
}

// wipeURL deletes every stream of the account.
func wipeURL(t *testing.T, url string) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
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
