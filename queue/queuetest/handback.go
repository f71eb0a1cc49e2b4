// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/queue"
)

// handBackKeepsPlace: a job that was handed back is the next one, for its own value and
// for another, at once and with the release that it had.
func handBackKeepsPlace(s *suite) {
	s.open("r")
	s.publish("r", jobs("t", 5)...)
	first := s.leaseTrial("t000000")
	s.must(first.HandBack(s.soon()), "hand back")
	s.wantErr(first.Extend(s.soon()), queue.ErrLost, "extend after a hand-back")
	asked := time.Now()
	again := s.leaseTrial("t000000")
	if diff := cmp.Diff(first.Job(), again.Job()); diff != "" {
		s.Fatalf("job that was handed back (-want +got)\n%s", diff)
	}
	if again.Fence() <= first.Fence() {
		s.Fatalf("fence %d, want more than %d", again.Fence(), first.Fence())
	}
	s.must(again.HandBack(s.soon()), "hand back again")
	other := s.leaseFrom(s.Open(s.T))
	if took := time.Since(asked); took >= s.TTL {
		s.Fatalf("two hand-backs took %v, as long as a lease lives", took)
	}
	if got := other.Job().Trial; got != "t000000" {
		s.Fatalf("the other value leased %s, want what was handed back", got)
	}
	s.must(other.Extend(s.soon()), "extend")
	s.done(other)
	for range 4 {
		s.done(s.lease())
	}
	s.wantStats("r", queue.Stats{})
}

// handBackBeforeLater: several jobs that were handed back come before all others, what was
// published after them among those. None is lost and none is there twice.
func handBackBeforeLater(s *suite) {
	s.open("r")
	s.publish("r", jobs("early", 3)...)
	var held []queue.Lease
	for range 3 {
		held = append(held, s.lease())
	}
	s.publish("r", jobs("late", 3)...)
	for _, l := range held {
		s.must(l.HandBack(s.soon()), "hand back")
	}
	seen := map[string]bool{}
	for n := range 6 {
		l := s.leaseFrom(s.Open(s.T))
		trial := l.Job().Trial
		if early := trial[0] == 'e'; seen[trial] || early != (n < 3) {
			s.Fatalf("lease %d is of %s, after %v; want the early ones first, each once", n+1, trial, seen)
		}
		seen[trial] = true
		s.done(l)
	}
	s.nothing("all are done")
	s.wantStats("r", queue.Stats{})
}

// handBackAtCap: a job that was handed back is to be had although its run is at its cap
// but for it, and its holder's place is free.
func handBackAtCap(s *suite) {
	s.open("r", func(r *queue.Run) { r.Limits.MaxInFlight = 1 })
	s.publish("r", jobs("t", 2)...)
	s.must(s.leaseTrial("t000000").HandBack(s.soon()), "hand back")
	s.done(s.leaseTrial("t000000"))
	s.done(s.leaseTrial("t000001"))
	s.wantStats("r", queue.Stats{})
}
