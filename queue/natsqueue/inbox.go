// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/tidemill/tidemill/queue"
)

// inbox is where the answer to a pull comes. A job comes under its own subject, so that only
// the subscription tells which pull it answers: one pull at a time has it.
type inbox struct {
	sub     *nats.Subscription // of all names below one of its own
	answers chan *nats.Msg
	pulls   uint64
	reply   string // of the last pull, and of no other
}

// strays is how many words to earlier pulls an inbox has room for, beside the answer.
const strays = 7

// inboxes keeps those that wait for nothing, about one for each slot: a subscription for each
// pull would cost the servers more than the pull does, and all of a cluster hear of each.
type inboxes struct {
	nc     *nats.Conn
	mu     sync.Mutex
	free   []*inbox
	closed bool
}

func (b *inboxes) take() (*inbox, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free); n > 0 {
		in := b.free[n-1]
		b.free = b.free[:n-1]
		return in, nil
	}
	in := &inbox{answers: make(chan *nats.Msg, 1+strays)}
	var err error
	if in.sub, err = b.nc.ChanSubscribe(b.nc.NewInbox()+".*", in.answers); err != nil {
		return nil, fmt.Errorf("%w: %w", queue.ErrUnreachable, err)
	}
	return in, nil
}

// next gives a name for the answer to the next pull.
func (in *inbox) next() string {
	in.pulls++
	in.reply = strings.TrimSuffix(in.sub.Subject, "*") + strconv.FormatUint(in.pulls, 10)
	return in.reply
}

// answered reports whether a message answers the last pull. What a server says of an earlier
// one, as a new leader may that thinks it waits still, does not.
func (in *inbox) answered(m *nats.Msg) bool { return isJob(m) || m.Subject == in.reply }

// put gives back one whose pull got an answer. Only a job, or that there is none, is the last
// word: where a leader changed a job may have been under way, and the next pull, maybe of
// another run, must not get it.
func (b *inboxes) put(in *inbox, a answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || a != served && a != empty {
		_ = in.sub.Unsubscribe()
		return
	}
	b.free = append(b.free, in)
}

func (b *inboxes) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, in := range b.free {
		_ = in.sub.Unsubscribe()
	}
	b.free = nil
}
