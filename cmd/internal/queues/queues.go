// SPDX-License-Identifier: Apache-2.0

// Package queues connects to a queue by its URL.
package queues

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// Help is how a --queue flag explains itself.
const Help = "queue: `URL` of a NATS server with JetStream, such as nats://127.0.0.1:4222; several with commas between them"

// Check refuses what names no queue.
func Check(where string) error {
	if where == "" {
		return app.Usage(app.Hint(errors.New("no queue given"),
			"name one with --queue or %s; on one machine tidemill run needs none", app.EnvName("queue")))
	}
	for server := range strings.SplitSeq(where, ",") {
		u, err := url.Parse(server)
		if err != nil { // what can't be read may have a password in it
			return app.Usage(errors.New("--queue can't be read: want nats://HOST:PORT or tls://HOST:PORT"))
		}
		if u.Scheme != "nats" && u.Scheme != "tls" || u.Host == "" {
			return app.Usage(fmt.Errorf("queue %q: want nats://HOST:PORT or tls://HOST:PORT", u.Redacted()))
		}
	}
	return nil
}

// Dial connects to the queue of a store.
func Dial(ctx context.Context, where, storeUUID string) (*natsqueue.Queue, error) {
	if err := Check(where); err != nil {
		return nil, err
	}
	q, err := natsqueue.Dial(ctx, where, natsqueue.Config{Store: storeUUID})
	if err != nil {
		return nil, app.Hint(err, "is the server up, with JetStream on, and does it serve this store and no other?")
	}
	return q, nil
}
