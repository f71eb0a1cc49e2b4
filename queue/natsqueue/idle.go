// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"fmt"
	"maps"

	"github.com/nats-io/nats.go"

	"github.com/tidemill/tidemill/queue"
)

// idleGroup is the queue group of the slots that have nothing to do: each wake
// goes to one of them.
const idleGroup = "idle"

// idle is a slot's membership: one subscription for each class that it serves
// and that has a run.
type idle struct {
	subs  map[queue.Class]*nats.Subscription
	wakes chan *nats.Msg
}

// wake tells one idle slot, of any worker, that the run may have a job.
func (q *Queue) wake(r queue.Run) {
	_ = q.nc.Publish(wakeSubject(r.Pool, r.Class), []byte(r.ID))
}

// announce tells everybody that the run may have jobs, and wakes one idle slot.
// Without the news a worker that is busy with a large run would not look at a
// small one that just came.
func (q *Queue) announce(r queue.Run) {
	q.board.touch(r.ID)
	_ = q.nc.Publish(newsSubject, []byte(r.ID))
	q.wake(r)
}

// wakes is where wakes come; their data names the run.
func (s *slot) wakes() <-chan *nats.Msg {
	if s.group == nil {
		return nil
	}
	return s.group.wakes
}

// join makes the slot a member for all classes that it serves now. It reports
// whether that is new.
func (s *slot) join() (joined bool, err error) {
	classes := s.q.board.classes(s.req)
	if s.group == nil {
		s.group = &idle{subs: map[queue.Class]*nats.Subscription{}, wakes: make(chan *nats.Msg, 64)}
	}
	for class := range classes {
		if s.group.subs[class] != nil {
			continue
		}
		sub, err := s.q.nc.ChanQueueSubscribe(wakeSubject(s.req.Pool, class), idleGroup, s.group.wakes)
		if err != nil {
			return joined, fmt.Errorf("%w: %w", queue.ErrUnreachable, err)
		}
		s.group.subs[class] = sub
		joined = true
	}
	if joined {
		// The server has to know before the look that follows.
		if err := s.q.nc.FlushTimeout(s.q.cfg.CallTimeout); err != nil {
			return joined, fmt.Errorf("%w: %w", queue.ErrUnreachable, err)
		}
	}
	return joined, nil
}

// leave ends the membership before the slot sends any wake itself, which would
// come back to it, and hands on what came meanwhile.
func (s *slot) leave() {
	if s.group == nil {
		return
	}
	for sub := range maps.Values(s.group.subs) {
		_ = sub.Drain()
	}
	_ = s.q.nc.FlushTimeout(s.q.cfg.CallTimeout)
	for {
		select {
		case m := <-s.group.wakes:
			_ = s.q.nc.Publish(m.Subject, m.Data)
		default:
			return
		}
	}
}
