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
	"github.com/tidemill/tidemill/queue"
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

// Dial connects to the queue of a store. It refuses a server that can't serve, and says
// in a hint what to do.
func (f *Flags) Dial(ctx context.Context, storeUUID string) (*natsqueue.Queue, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	opts, err := f.options()
	if err != nil {
		return nil, app.Usage(err)
	}
	q, err := natsqueue.Dial(ctx, f.URL, f.config(storeUUID), opts...)
	switch {
	case err == nil:
		return q, nil
	case f.Wait > 0 && errors.Is(err, queue.ErrUnreachable):
		return nil, app.Hint(err, "%s --queue-wait (%s) is how long to wait for it", advice(err), f.Wait)
	}
	return nil, app.Hint(err, "%s", advice(err))
}

// advice is what to do about a server that was refused.
func advice(err error) string {
	for _, a := range []struct {
		err error
		do  string
	}{
		{natsqueue.ErrCredentials, "name a user that the server knows with --nats-creds, --nats-nkey, --nats-user or --nats-token"},
		{natsqueue.ErrPermission, "docs/nats.md lists what the user has to be allowed"},
		{natsqueue.ErrTLS, "use tls://HOST:PORT, name the authority with --nats-ca, and our own certificate with --nats-cert and --nats-key if the server wants one"},
		{natsqueue.ErrNoJetStream, "put a jetstream block into the server's configuration, and enable it for the account"},
		{natsqueue.ErrTooOld, "upgrade every server of the cluster"},
		{natsqueue.ErrClockSkew, "have both machines set their clocks by NTP"},
		{natsqueue.ErrReplicas, "ask for fewer copies with --nats-replicas, or add servers to the cluster"},
		{queue.ErrConflict, "give each store a NATS account of its own, or delete the stream if nothing needs it"},
	} {
		if errors.Is(err, a.err) {
			return a.do
		}
	}
	return "is the server up, and can it be reached from here?"
}
