// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"time"

	"github.com/tidemill/tidemill/queue"
)

func capped(n int) func(*queue.Run) {
	return func(r *queue.Run) { r.Limits.MaxInFlight = n }
}

func maxInFlight(s *suite) {
	s.open("r", capped(2))
	s.publish("r", jobs("t", 5)...)
	one, two := s.lease(), s.lease()
	s.nothing("two are in flight")
	s.wantStats("r", queue.Stats{Pending: 3, InFlight: 2})
	collect := s.waiting(s.Queue)
	s.nothing("two are in flight")
	s.done(one)
	three := collect()
	s.nothing("two are in flight again")
	s.must(two.Bury(s.soon(), "why"), "bury")
	four := s.lease()
	s.must(three.Retry(s.soon(), time.Hour, nil), "retry")
	five := s.lease()
	s.done(four)
	s.done(five)
	s.wantStats("r", queue.Stats{Delayed: 1, Dead: 1})
}

func maxInFlightShared(s *suite) {
	s.open("r", capped(1))
	s.open("free")
	s.publish("r", jobs("t", 3)...)
	far := s.Open(s.T)
	held := s.leaseFrom(far)
	s.nothing("another value holds the only place")
	s.publish("free", job("f"))
	s.done(s.leaseTrial("f")) // a run at its cap is in nobody's way
	collect := s.waiting(s.Queue)
	s.done(held)
	s.done(collect())
	s.done(s.leaseFrom(far))
}

func maxInFlightRaised(s *suite) {
	s.open("r", capped(1))
	s.publish("r", jobs("t", 6)...)
	held := []queue.Lease{s.lease()}
	going := []func() error{s.keep(held[0])}
	near, far := s.waiting(s.Queue), s.waiting(s.Open(s.T))
	s.nothing("one is in flight")
	s.open("r", capped(3))
	for _, collect := range []func() queue.Lease{near, far} {
		held = append(held, collect())
		going = append(going, s.keep(held[len(held)-1]))
	}
	s.nothing("three are in flight")
	s.open("r") // no cap at all
	for range 2 {
		held = append(held, s.lease())
		going = append(going, s.keep(held[len(held)-1]))
	}
	s.open("r", capped(1)) // revokes nothing
	s.nothing("more are in flight than the lowered cap")
	for i, l := range held {
		s.must(going[i](), "extend under a lowered cap")
		s.must(l.Extend(s.soon()), "extend under a lowered cap")
		s.done(l)
	}
	s.done(s.lease())
	s.wantStats("r", queue.Stats{})
}

// maxInFlightLowered: what runs goes on, and what comes back waits until there is room.
func maxInFlightLowered(s *suite) {
	s.open("r", capped(4))
	s.publish("r", jobs("t", 5)...)
	held := []queue.Lease{s.lease(), s.lease(), s.lease(), s.lease()}
	going := []func() error{s.keep(held[2]), s.keep(held[3])}
	s.open("r", capped(2))
	for _, l := range held[:2] {
		s.must(l.HandBack(s.soon()), "hand back")
	}
	s.nothing("two that go on are as many as may")
	s.wantStats("r", queue.Stats{Pending: 3, InFlight: 2})
	for i, l := range held[2:] {
		s.must(going[i](), "extend under a lowered cap")
		s.done(l)
	}
	one, two := s.lease(), s.lease()
	s.nothing("two are in flight")
	s.done(one)
	s.done(two)
	s.done(s.lease())
	s.wantStats("r", queue.Stats{})
}

// maxStarts only asks that starts are not too fast: n jobs may not start in less
// than the time for those beyond the burst.
func maxStarts(s *suite) {
	const rate, n = 10, 12
	s.open("r", func(r *queue.Run) { r.Limits.MaxStartsPerSecond = rate })
	s.open("free")
	s.publish("r", jobs("t", n)...)
	far := s.Open(s.T)
	begun := time.Now()
	for i := range n {
		q := s.Queue
		if i%2 == 1 {
			q = far
		}
		s.done(s.leaseFrom(q))
		if i == 0 {
			s.publish("free", job("f"))
		}
	}
	s.done(s.lease())
	// One of these thirteen was the free run's, and the last may not have been the
	// slow run's: be generous by two.
	if took, least := time.Since(begun), time.Second*time.Duration(n-2-s.StartBurst)/rate; took < least {
		s.Fatalf("%d jobs started within %v, want %v at least at %d per second", n, took, least, rate)
	}
	s.open("r") // no limit any more
	s.publish("r", jobs("u", 50)...)
	for range 50 {
		s.done(s.lease())
	}
}
