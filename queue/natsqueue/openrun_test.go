// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/tidemill/tidemill/queue"
)

// A worker that waits learns of a run as soon as it is in the bucket, and restores its
// consumer if it finds none. That must not meet the opening of the run half way: a
// deleted consumer's files go a little later than the consumer.
func TestOpenRunWhileWorkersLook(t *testing.T) {
	srv := startServer(t)
	q := open(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for ctx.Err() == nil {
				l, err := q.Lease(ctx, queue.Request{
					Worker: fmt.Sprint("w", w), Pool: queue.DefaultPool, Offers: []string{"any"},
					Nonce: "0123456789abcdef0123456789abcdef",
				})
				if err != nil {
					continue // only ctx ends it
				}
				if err := l.Done(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	defer workers.Wait()
	defer cancel()
	for i := range 60 {
		id := fmt.Sprintf("run-%d", i)
		if err := q.OpenRun(t.Context(), queue.Run{ID: id, Class: "any"}); err != nil {
			t.Fatalf("open %s: %v", id, err)
		}
		jobs := []queue.Job{{ID: queue.ID{Trial: "t", Epoch: 1, Release: 1}, Body: []byte("{}")}}
		if _, err := q.Publish(t.Context(), id, jobs); err != nil {
			t.Fatalf("publish to %s: %v", id, err)
		}
	}
}
