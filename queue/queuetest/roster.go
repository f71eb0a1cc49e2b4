// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemill/tidemill/queue"
)

// rosters returns the rosters of two values, or nil where the implementation has none.
func rosters(s *suite) (near, far queue.Roster) {
	near, ok := s.Queue.(queue.Roster)
	if !ok {
		return nil, nil
	}
	far, ok = s.Open(s.T).(queue.Roster)
	if !ok {
		s.Fatal("another value has no roster")
	}
	return near, far
}

func rosterWorkers(s *suite) {
	near, far := rosters(s)
	if near == nil {
		return
	}
	list := func(when string, want ...queue.Presence) {
		s.Helper()
		got, err := far.Workers(s.soon())
		s.must(err, "workers")
		for _, p := range got {
			if p.At.IsZero() {
				s.Errorf("worker %s %s has no time", p.Worker, when)
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(queue.Presence{}, "At"), cmpopts.EquateEmpty()); diff != "" {
			s.Errorf("workers %s (-want +got):\n%s", when, diff)
		}
	}
	list("before any came")
	since := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	one := queue.Presence{
		Worker: "b.example-1", Pool: "p", Offers: []string{"docker"}, Slots: 4, Busy: 1, Version: "v1", Since: since,
		Running: []queue.Running{{Run: "r", TaskID: "t/1", TrialIndex: 2, TrialID: "ab", Attempt: 3, Phase: "agent", Since: since}},
		Ended:   map[string]queue.Tally{"r": {Ended: 5, Infra: 2}},
	}
	two := queue.Presence{Worker: "a", Pool: "p", Offers: []string{"docker"}, Slots: 1, Since: since}
	s.must(near.Announce(s.soon(), one), "announce")
	s.must(far.Announce(s.soon(), two), "announce")
	list("after two came", two, one)
	one.Busy, one.Draining = 0, true
	s.must(near.Announce(s.soon(), one), "announce again")
	list("after one changed", two, one)
	s.must(near.Withdraw(s.soon(), one.Worker), "withdraw")
	s.must(near.Withdraw(s.soon(), one.Worker), "withdraw again")
	list("after one went", two)

	s.wantErr(near.Announce(s.soon(), queue.Presence{Worker: "a b"}), queue.ErrInvalid, "a name with a space")
	s.wantErr(near.Announce(s.soon(), queue.Presence{Worker: "a", Running: make([]queue.Running, queue.MaxRunning+1)}), queue.ErrInvalid, "too much that runs")
	s.wantErr(near.Withdraw(s.soon(), ""), queue.ErrInvalid, "no name")
}

func rosterClaims(s *suite) {
	near, far := rosters(s)
	if near == nil {
		return
	}
	claim := func(r queue.Roster, what, holder string, want bool) {
		s.Helper()
		got, err := r.Claim(s.soon(), what, holder)
		s.must(err, "claim")
		if got != want {
			s.Errorf("claim of %s by %s: %v, want %v", what, holder, got, want)
		}
	}
	claim(near, "govern", "one", true)
	claim(far, "govern", "two", false)
	claim(near, "govern", "one", true)
	claim(far, "other", "two", true)
	s.must(far.Unclaim(s.soon(), "govern", "two"), "unclaim what somebody else has")
	claim(far, "govern", "two", false)
	s.must(near.Unclaim(s.soon(), "govern", "one"), "unclaim")
	s.must(near.Unclaim(s.soon(), "govern", "one"), "unclaim again")
	claim(far, "govern", "two.example", true)
	claim(near, "govern", "one", false)
	_, err := near.Claim(s.soon(), "a.b", "one")
	s.wantErr(err, queue.ErrInvalid, "a claim with a dot")
}
