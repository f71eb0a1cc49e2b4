// SPDX-License-Identifier: Apache-2.0

// Package queues connects to a queue by its URL.
package queues

import (
	"context"
	"fmt"
	"net/url"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// Help is how a --queue flag explains itself.
const Help = "queue: `URL` of a NATS server with JetStream, such as nats://127.0.0.1:4222"

// Dial connects to the queue of a store.
func Dial(ctx context.Context, where, storeUUID string) (*natsqueue.Queue, error) {
	u, err := url.Parse(where)
	switch {
	case where == "":
		return nil, app.Usage(fmt.Errorf("no queue given; name one with --queue or %s", app.EnvName("queue")))
	case err != nil:
		return nil, app.Usage(fmt.Errorf("queue %q: %w", where, err))
	case u.Scheme != "nats" && u.Scheme != "tls":
		return nil, app.Usage(fmt.Errorf("queue %q: no queue for this URL; want nats://HOST:PORT or tls://HOST:PORT", where))
	}
	q, err := natsqueue.Dial(ctx, where, natsqueue.Config{Store: storeUUID})
	if err != nil {
		return nil, app.Hint(fmt.Errorf("queue %s: %w", u.Redacted(), err), "is the server up, with JetStream on?")
	}
	return q, nil
}
