// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/queue"
)

func retryLater(s *suite) {
	s.open("r")
	s.publish("r", job("a"))
	first := s.leaseTrial("a")
	after := s.TTL / 2
	asked := time.Now()
	s.must(first.Retry(s.soon(), after, []byte("second")), "retry")
	s.wantStats("r", queue.Stats{Delayed: 1})
	second := s.leaseTrial("a")
	if waited := time.Since(asked); waited < after-s.Early {
		s.Fatalf("came back after %v, want %v at least", waited, after)
	}
	want := queue.Job{ID: queue.ID{Trial: "a", Epoch: 1, Release: 2}, Run: "r", Body: []byte("second")}
	if diff := cmp.Diff(want, second.Job()); diff != "" {
		s.Fatalf("retried job (-want +got)\n%s", diff)
	}
	if second.Fence() <= first.Fence() {
		s.Fatalf("fence %d, want more than %d", second.Fence(), first.Fence())
	}
	s.must(second.Retry(s.soon(), after, []byte("third")), "retry again")
	third := s.leaseTrial("a")
	if got := third.Job(); got.Release != 3 || string(got.Body) != "third" {
		s.Fatalf("second retry came back as %s %q, want release 3 and its body", got.ID, got.Body)
	}
	s.done(third)
	s.wantStats("r", queue.Stats{})
}

func retryAtOnce(s *suite) {
	s.open("r")
	s.publish("r", jobs("t", 3)...)
	for _, after := range []time.Duration{0, -time.Hour, time.Nanosecond} {
		l := s.lease()
		s.must(l.Retry(s.soon(), after, nil), "retry after %v", after)
	}
	seen := map[string]int{}
	for range 3 {
		l := s.lease()
		seen[l.Job().Trial] = l.Job().Release
		s.done(l)
	}
	if len(seen) != 3 {
		s.Fatalf("retried jobs came back as %v, want each of the three", seen)
	}
	for trial, release := range seen {
		if release < 2 {
			s.Fatalf("trial %s came back as release %d, want 2 or more", trial, release)
		}
	}
	s.wantStats("r", queue.Stats{})
}

func retryKeepsBody(s *suite) {
	s.open("r")
	a := job("a")
	s.publish("r", a)
	s.must(s.leaseTrial("a").Retry(s.soon(), 0, nil), "retry")
	l := s.leaseTrial("a")
	if got := string(l.Job().Body); got != string(a.Body) {
		s.Fatalf("body %q, want the old one %q", got, a.Body)
	}
	s.must(l.Retry(s.soon(), 0, []byte{}), "retry with an empty body")
	l = s.leaseTrial("a")
	if got := l.Job().Body; len(got) != 0 {
		s.Fatalf("body %q, want none", got)
	}
	s.done(l)
}

func retryFreesPlace(s *suite) {
	s.open("r", func(r *queue.Run) { r.Limits.MaxInFlight = 1 })
	s.publish("r", jobs("t", 4)...)
	for range 3 {
		s.must(s.lease().Retry(s.soon(), time.Hour, nil), "retry")
	}
	s.done(s.lease())
	s.wantStats("r", queue.Stats{Delayed: 3})
}

func retryIsLive(s *suite) {
	s.open("r")
	a := job("a")
	s.publish("r", a)
	s.must(s.leaseTrial("a").Retry(s.soon(), time.Hour, nil), "retry")
	s.wantPublished(s.publish("r", release(a, 2)), 0, 1)
	s.wantPublished(s.publish("r", release(a, 9), job("b")), 1, 1)
	s.wantStats("r", queue.Stats{Pending: 1, Delayed: 1})
	s.done(s.leaseTrial("b"))
	s.nothing("the other one's time is not yet come")
}

func retryBadBody(s *suite) {
	s.open("r")
	s.publish("r", job("a"))
	l := s.leaseTrial("a")
	s.wantErr(l.Retry(s.soon(), 0, make([]byte, queue.MaxBody+1)), queue.ErrInvalid, "retry with a fat body")
	s.must(l.Extend(s.soon()), "extend after a refused retry")
	s.done(l)
}

func buryKeeps(s *suite) {
	s.open("r")
	s.publish("r", jobs("t", 3)...)
	before := time.Now().Add(-time.Minute)
	var want []queue.DeadLetter
	for range 3 {
		l := s.lease()
		reason := "killed its worker three times: " + l.Job().Trial + "\nsecond line"
		s.must(l.Bury(s.soon(), reason), "bury")
		want = append(want, queue.DeadLetter{Job: l.Job(), Reason: reason})
	}
	s.wantStats("r", queue.Stats{Dead: 3})
	got, err := s.Queue.DeadLetters(s.soon(), "r", 0)
	s.must(err, "dead letters")
	for i := range got {
		if at := got[i].At; at.Before(before) || at.After(time.Now().Add(time.Minute)) {
			s.Errorf("buried at %v, want about now", at)
		}
		got[i].At = time.Time{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Fatalf("dead letters (-want +got)\n%s", diff)
	}
	s.nothing("all are buried")
	s.wantPublished(s.publish("r", release(job("t000000"), 2)), 1, 0)
	s.done(s.leaseTrial("t000000"))
}

func buryLimit(s *suite) {
	s.open("r")
	s.open("other")
	s.publish("r", jobs("t", 5)...)
	for range 5 {
		s.must(s.lease().Bury(s.soon(), "why"), "bury")
	}
	for limit, want := range map[int]int{-1: 5, 0: 5, 2: 2, 5: 5, 50: 5} {
		got, err := s.Queue.DeadLetters(s.soon(), "r", limit)
		s.must(err, "dead letters")
		if len(got) != want {
			s.Fatalf("%d dead letters with a limit of %d, want %d", len(got), limit, want)
		}
		if got[0].Job.Trial != "t000000" {
			s.Fatalf("first dead letter is of %s, want the oldest", got[0].Job.Trial)
		}
	}
	got, err := s.Queue.DeadLetters(s.soon(), "other", 0)
	if err != nil || len(got) != 0 {
		s.Fatalf("dead letters of a run without any = %v, %v", got, err)
	}
	s.wantClosed("r", true, settled, "with dead letters")
	got, err = s.Queue.DeadLetters(s.soon(), "r", 0)
	if err != nil || len(got) != 5 {
		s.Fatalf("%d dead letters after closing the run, error %v, want 5", len(got), err)
	}
}
