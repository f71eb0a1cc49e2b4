// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/queue"
)

func roundTrip(s *suite) {
	s.open("r")
	want := queue.Job{
		ID:   queue.ID{Trial: "0123456789abcdef0123456789abcdef", Epoch: 3, Release: 7},
		Run:  "r",
		Body: []byte("\x00\xffplan row\r\n\r\n"),
	}
	s.wantPublished(s.publish("r", want), 1, 0)
	l := s.lease()
	if diff := cmp.Diff(want, l.Job()); diff != "" {
		s.Fatalf("job (-published +leased)\n%s", diff)
	}
	if l.TTL() != s.TTL {
		s.Fatalf("TTL = %v, want %v", l.TTL(), s.TTL)
	}
	if l.Fence() == 0 {
		s.Fatal("fence is 0")
	}
	s.done(l)
	s.wantStats("r", queue.Stats{})

	empty := queue.Job{ID: queue.ID{Trial: "no-body_1", Epoch: 1, Release: 1}}
	fat := job("fat")
	fat.Body = make([]byte, queue.MaxBody)
	s.wantPublished(s.publish("r", empty, fat), 2, 0)
	s.wantPublished(s.publish("r"), 0, 0)
	for _, size := range []int{0, queue.MaxBody} {
		l := s.lease()
		if got := len(l.Job().Body); got != size {
			s.Fatalf("body of %d bytes, want %d", got, size)
		}
		s.done(l)
	}
}

func sameIDTwice(s *suite) {
	s.open("r")
	s.wantPublished(s.publish("r", job("a")), 1, 0)
	s.wantPublished(s.publish("r", job("a")), 0, 1)
	s.done(s.leaseTrial("a"))
	s.nothing("the only job is done")
}

func sameTrialInBatch(s *suite) {
	s.open("r")
	a := job("a")
	s.wantPublished(s.publish("r", a, a, release(a, 2), job("b")), 2, 2)
	l := s.leaseTrial("a")
	if got := l.Job().Release; got != 1 {
		s.Fatalf("release %d, want the first one that was named: 1", got)
	}
	s.done(l)
	s.done(s.leaseTrial("b"))
	s.nothing("both are done")
}

func liveTrialIsSkipped(s *suite) {
	s.open("r")
	a := job("a")
	s.publish("r", a)
	s.wantPublished(s.publish("r", release(a, 2)), 0, 1)
	l := s.leaseTrial("a")
	if got := l.Job().Release; got != 1 {
		s.Fatalf("release %d, want 1", got)
	}
	s.wantPublished(s.publish("r", release(a, 3), job("b")), 1, 1)
	s.done(l)
	s.done(s.leaseTrial("b"))
	s.wantStats("r", queue.Stats{})
}

func releaseAfterDone(s *suite) {
	s.open("r")
	a := job("a")
	s.publish("r", a)
	first := s.leaseTrial("a")
	s.done(first)
	s.wantPublished(s.publish("r", release(a, 2)), 1, 0)
	second := s.leaseTrial("a")
	if second.Fence() <= first.Fence() {
		s.Fatalf("fence %d of the newer lease, want more than %d", second.Fence(), first.Fence())
	}
	s.done(second)
	epoch := release(a, 1)
	epoch.Epoch = 2
	s.wantPublished(s.publish("r", epoch), 1, 0)
	s.done(s.leaseTrial("a"))
}

func doneIDIsKnown(s *suite) {
	s.open("r")
	s.publish("r", job("a"))
	s.done(s.leaseTrial("a"))
	s.wantPublished(s.publish("r", job("a")), 0, 1)
	s.nothing("its id is known")
}

func largeBatch(s *suite) {
	s.open("r")
	want := jobs("t", 2345)
	s.wantPublished(s.publish("r", want...), len(want), 0)
	s.wantStats("r", queue.Stats{Pending: len(want)})
	for i := range 25 {
		s.done(s.leaseTrial(want[i].Trial))
	}
	s.wantStats("r", queue.Stats{Pending: len(want) - 25})
	s.wantPublished(s.publish("r", want...), 0, len(want))
}

func halfKnownBatch(s *suite) {
	s.open("r")
	all := jobs("t", 40)
	var first []queue.Job
	for i := 0; i < len(all); i += 2 {
		first = append(first, all[i])
	}
	s.wantPublished(s.publish("r", first...), 20, 0)
	s.done(s.leaseTrial(all[0].Trial)) // known, but no longer live
	s.wantPublished(s.publish("r", all...), 20, 20)
	seen := map[string]int{}
	for range 39 {
		l := s.lease()
		seen[l.Job().Trial]++
		s.done(l)
	}
	if len(seen) != 39 {
		s.Fatalf("%d trials were handed out, want 39", len(seen))
	}
	s.wantStats("r", queue.Stats{})
}

func badJobRefusesBatch(s *suite) {
	s.open("r")
	fat := job("fat")
	fat.Body = make([]byte, queue.MaxBody+1)
	foreign := job("foreign")
	foreign.Run = "other"
	for _, bad := range []queue.Job{fat, foreign, {ID: queue.ID{Trial: "a.b", Epoch: 1, Release: 1}}, {ID: queue.ID{Trial: "a"}}} {
		_, err := s.Queue.Publish(s.soon(), "r", []queue.Job{job("a"), bad})
		s.wantErr(err, queue.ErrInvalid, "publish a bad job")
	}
	s.wantStats("r", queue.Stats{})
}

func publishToUnknownRun(s *suite) {
	_, err := s.Queue.Publish(s.soon(), "nosuchrun", []queue.Job{job("a")})
	s.wantErr(err, queue.ErrUnknownRun, "publish to a run that is not open")
}

func sameTrialInTwoRuns(s *suite) {
	s.open("r1")
	s.open("r2")
	s.wantPublished(s.publish("r1", job("a")), 1, 0)
	s.wantPublished(s.publish("r2", job("a")), 1, 0)
	runs := map[string]bool{}
	one, two := s.lease(), s.lease()
	for _, l := range []queue.Lease{one, two} {
		runs[l.Job().Run] = true
		s.done(l)
	}
	if len(runs) != 2 {
		s.Fatalf("jobs came from the runs %v, want both", runs)
	}
}
