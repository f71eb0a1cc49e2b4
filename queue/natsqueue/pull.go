// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tidemill/tidemill/queue"
)

// answer is what a consumer says to a pull.
type answer int

const (
	served  answer = iota
	empty          // nothing is pending, or the run is paused
	full           // the run is at its cap: there is no answer at all then
	missing        // nobody answers for the consumer
)

// delivery is a message that was handed to us, until it is acked.
type delivery struct {
	queue.Job
	seq     uint64 // in TRIALS; never means another message
	pending uint64 // more of the run behind it
	again   bool   // it was delivered before, to whomever
	reply   string // where acks go
}

var pullRequest = []byte(`{"batch":1,"no_wait":true}`)

// pull asks a run's consumer for one message, without waiting for one to come.
//
// nats.go's FetchNoWait would hang for a second on a run that is at its cap: the
// server parks such a pull and says nothing. So this is a pull of our own, which
// ends after ProbeTimeout without losing a message that is under way: the
// inbox is given up first, and what came until the server has confirmed
// that is still ours.
func (q *Queue) pull(ctx context.Context, r openRun) (*delivery, answer, error) {
	in, err := q.inboxes.take()
	if err != nil {
		return nil, missing, err
	}
	if err := q.nc.PublishRequest(apiPrefix+"CONSUMER.MSG.NEXT."+trialsStream+"."+r.ID, in.next(), pullRequest); err != nil {
		_ = in.sub.Unsubscribe()
		return nil, missing, fmt.Errorf("%w: %w", queue.ErrUnreachable, err)
	}
	limit := q.cfg.CallTimeout
	if r.Limits.MaxInFlight > 0 {
		limit = q.cfg.ProbeTimeout
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for waiting := true; waiting; {
		select {
		case m := <-in.answers:
			if !in.answered(m) || q.isStray(r, m) {
				continue
			}
			d, a, err := q.read(r, m)
			q.inboxes.put(in, a)
			return d, a, err
		case <-timeout.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
	}
	m, err := q.giveUp(in, r)
	switch {
	case m == nil && err != nil:
		return nil, missing, err
	case m == nil && r.Limits.MaxInFlight > 0:
		return nil, full, ctx.Err()
	case m == nil:
		return nil, missing, ctx.Err()
	}
	d, a, err := q.read(r, m)
	if d != nil && ctx.Err() != nil {
		q.handBack(d, 0) // nobody is there to take it
		return nil, empty, ctx.Err()
	}
	return d, a, err
}

// giveUp ends an inbox and returns what had come until the end.
func (q *Queue) giveUp(in *inbox, r openRun) (*nats.Msg, error) {
	if err := in.sub.Drain(); err != nil && q.nc.IsClosed() {
		return nil, fmt.Errorf("%w: %w", queue.ErrUnreachable, err)
	}
	err := q.nc.FlushTimeout(q.cfg.CallTimeout)
	for {
		select {
		case m := <-in.answers:
			if in.answered(m) && !q.isStray(r, m) {
				return m, nil
			}
			continue
		default:
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", queue.ErrUnreachable, err)
		}
		return nil, nil
	}
}

// isJob tells a job from a status.
func isJob(m *nats.Msg) bool { return strings.HasPrefix(m.Reply, "$JS.ACK.") }

// isStray tells a job of another run, which answers an earlier pull, and hands it back.
func (q *Queue) isStray(r openRun, m *nats.Msg) bool {
	if !isJob(m) {
		return false
	}
	meta, err := m.Metadata()
	if err != nil || meta.Consumer == r.ID {
		return false // read says what is wrong with it
	}
	q.handBack(&delivery{reply: m.Reply}, 0)
	return true
}

// read says what an answer means.
func (q *Queue) read(r openRun, m *nats.Msg) (*delivery, answer, error) {
	if !isJob(m) {
		switch status, _ := strconv.Atoi(m.Header.Get("Status")); {
		case status == 503:
			return nil, missing, nil
		case status == 409 && strings.Contains(strings.ToLower(m.Header.Get("Description")), "consumer deleted"):
			return nil, missing, nil
		case status == 409: // too many pulls, or its leader is moving
			return nil, full, nil
		}
		return nil, empty, nil
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil, missing, fmt.Errorf("delivery of run %s: reply %q: %w", r.ID, m.Reply, err)
	}
	d := &delivery{seq: meta.Sequence.Stream, pending: meta.NumPending, again: meta.NumDelivered > 1, reply: m.Reply}
	id, err := idOf(m.Header.Get)
	if err != nil {
		return nil, missing, fmt.Errorf("message %d of stream %s, subject %s, is no job: %w", d.seq, trialsStream, m.Subject, err)
	}
	d.Job = queue.Job{ID: id, Run: r.ID, Body: m.Data}
	return d, served, nil
}
