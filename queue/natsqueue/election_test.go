// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// Who begins while JetStream has no leader waits for one, if it may.
func TestDialInAnElection(t *testing.T) {
	nodes := testenv.NATSCluster(t)
	for _, n := range nodes[1:] {
		n.Kill()
	}
	url := nodes[0].URL()
	cfg := natsqueue.Config{Store: "election", CallTimeout: 300 * time.Millisecond}
	if q, err := natsqueue.Dial(t.Context(), url, cfg); !errors.Is(err, queue.ErrUnreachable) {
		if err == nil {
			_ = q.Close()
		}
		t.Fatalf("without a leader: %v, want %v", err, queue.ErrUnreachable)
	}
	waited := 0
	cfg.OpenWait = 2 * time.Minute
	cfg.OnWait = func(why error) {
		if waited++; waited > 1 {
			return
		}
		if !errors.Is(why, queue.ErrUnreachable) {
			t.Error(why)
		}
		for _, n := range nodes[1:] {
			n.Start()
		}
	}
	q, err := natsqueue.Dial(t.Context(), url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if waited == 0 {
		t.Error("nobody had to wait")
	}
	if err := q.OpenRun(t.Context(), anyRun); err != nil {
		t.Error(err)
	}
}
