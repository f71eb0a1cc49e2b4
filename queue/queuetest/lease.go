// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"context"
	"errors"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// waiting starts a Lease and returns how to collect it.
func (s *suite) waiting(q queue.Queue, change ...func(*queue.Request)) (collect func() queue.Lease) {
	type result struct {
		lease queue.Lease
		err   error
	}
	got := make(chan result, 1)
	ctx := s.soon()
	go func() {
		l, err := q.Lease(ctx, request(change...))
		got <- result{l, err}
	}()
	return func() queue.Lease {
		s.Helper()
		r := <-got
		s.must(r.err, "waiting lease")
		return r.lease
	}
}

func leaseWaits(s *suite) {
	s.nothing("there is no run")
	s.open("r")
	collect := s.waiting(s.Queue)
	s.nothing("there is no job")
	s.publish("r", job("a"), job("b"))
	s.done(collect())
	s.done(s.lease())
	other := s.Open(s.T)
	far := s.waiting(other)
	s.publish("r", job("c"))
	s.done(far())
}

func leaseHonoursContext(s *suite) {
	s.open("r")
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, err := s.Queue.Lease(ctx, request())
	s.wantErr(err, context.Canceled, "lease with a context that has ended")

	ctx, cancel = context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Queue.Lease(ctx, request())
		ended <- err
	}()
	cancel()
	s.wantErr(<-ended, context.Canceled, "lease whose context ends")
	s.publish("r", job("a"))
	s.done(s.leaseTrial("a"))
}

func poolsAndClasses(s *suite) {
	s.open("plain")
	s.open("gpu", func(r *queue.Run) { r.Class = "docker-gpu" })
	s.open("far", func(r *queue.Run) { r.Pool = "far" })
	s.publish("gpu", job("gpu"))
	s.publish("far", job("far"))
	s.nothing("its run needs more than is offered", offers("subprocess", "docker"))
	s.nothing("its run is in another pool")
	s.done(s.leaseTrial("gpu", offers("gpu", "docker", "subprocess")))
	s.done(s.leaseTrial("far", inPool("far")))
	s.publish("plain", job("plain"))
	s.nothing("the pool has no run of that class", inPool("far"))
	s.done(s.leaseTrial("plain", offers("x", "subprocess")))
}

// exceptedRuns: what is handed back because it can't be served here is left to others, and
// the same value is given jobs of its other runs meanwhile.
func exceptedRuns(s *suite) {
	s.open("r")
	s.open("other")
	s.publish("r", job("a"))
	not := func(r *queue.Request) { r.Except = []string{"r"} }
	l := s.leaseTrial("a")
	s.must(l.HandBack(s.soon()), "hand back")
	s.nothing("its run is excepted", not)
	s.publish("other", job("b"))
	s.done(s.leaseTrial("b", not))
	theirs := s.leaseFrom(s.Open(s.T))
	if got := theirs.Job().Trial; got != "a" {
		s.Fatalf("the other value leased %s, want a", got)
	}
	s.done(theirs)
	s.wantStats("r", queue.Stats{})
}

func classAppears(s *suite) {
	s.open("r")
	collect := s.waiting(s.Queue, offers("subprocess", "gpu"))
	s.open("late", func(r *queue.Run) { r.Class = "gpu-subprocess" })
	s.publish("late", job("a"))
	s.done(collect())
}

func extendKeeps(s *suite) {
	s.open("r")
	s.publish("r", job("a"))
	l := s.leaseTrial("a")
	stop := s.keep(l)
	fence := l.Fence()
	ctx, cancel := context.WithTimeout(s.Context(), 4*s.TTL)
	defer cancel()
	if other, err := s.Open(s.T).Lease(ctx, request()); err == nil {
		s.Fatalf("%s was handed out again although its lease was extended", other.Job().ID)
	}
	s.must(stop(), "extend")
	if l.Fence() != fence {
		s.Fatalf("fence went from %d to %d by extending", fence, l.Fence())
	}
	select {
	case <-l.Revoked():
		s.Fatal("revoked although it was extended")
	default:
	}
	s.done(l)
	s.wantStats("r", queue.Stats{})
}

func abandonComesBack(s *suite) {
	s.open("r")
	s.publish("r", job("a"))
	var last queue.Fence
	for range 3 {
		l := s.leaseTrial("a")
		if l.Fence() <= last {
			s.Fatalf("fence %d, want more than %d", l.Fence(), last)
		}
		last = l.Fence()
		l.Abandon()
		l.Abandon()
	}
	l := s.leaseTrial("a")
	if l.Job().Release != 1 {
		s.Fatalf("release %d after redelivery, want 1 as published", l.Job().Release)
	}
	s.done(l)
	l.Abandon()
	s.wantStats("r", queue.Stats{})
}

func closeLeavesJobs(s *suite) {
	s.open("r")
	s.publish("r", job("a"))
	other := s.Open(s.T)
	lost := s.leaseFrom(other)
	s.must(other.Close(), "close")
	if err := lost.Done(s.soon()); err == nil {
		s.Fatal("done through a closed value returned nil")
	}
	l := s.leaseTrial("a")
	if l.Fence() <= lost.Fence() {
		s.Fatalf("fence %d, want more than %d", l.Fence(), lost.Fence())
	}
	s.done(l)
}

func endsOnce(s *suite) {
	s.open("r")
	ends := map[string]func(queue.Lease) error{
		"done":  func(l queue.Lease) error { return l.Done(s.soon()) },
		"retry": func(l queue.Lease) error { return l.Retry(s.soon(), time.Hour, nil) },
		"bury":  func(l queue.Lease) error { return l.Bury(s.soon(), "why") },
	}
	for name, end := range ends {
		s.publish("r", job(name))
		l := s.leaseTrial(name)
		s.must(end(l), "%s", name)
		for again, end := range ends {
			s.wantErr(end(l), queue.ErrLost, again+" after "+name)
		}
		s.wantErr(l.Extend(s.soon()), queue.ErrLost, "extend after "+name)
		l.Abandon()
	}
	s.wantStats("r", queue.Stats{Delayed: 1, Dead: 1})
}

// lose lets somebody else take over the only job, and returns both leases.
func (s *suite) lose() (stale, fresh queue.Lease) {
	s.Helper()
	stale = s.lease()
	fresh = s.leaseFrom(s.Open(s.T)) // comes when the first one's time is up
	if stale.Job().Trial != fresh.Job().Trial {
		s.Fatalf("trial %s was taken over, want %s", fresh.Job().Trial, stale.Job().Trial)
	}
	if fresh.Fence() <= stale.Fence() {
		s.Fatalf("fence %d of the newer holder, want more than %d", fresh.Fence(), stale.Fence())
	}
	return stale, fresh
}

func staleHolder(s *suite) {
	s.open("r")
	s.publish("r", job("a"))
	stale, fresh := s.lose()
	stop := s.keep(fresh)
	s.wantErr(stale.Done(s.soon()), queue.ErrLost, "done of the old holder")
	s.wantErr(stale.Retry(s.soon(), 0, []byte("x")), queue.ErrLost, "retry of the old holder")
	s.wantErr(stale.HandBack(s.soon()), queue.ErrLost, "hand-back of the old holder")
	s.wantErr(stale.Bury(s.soon(), "why"), queue.ErrLost, "bury of the old holder")
	s.wantErr(stale.Extend(s.soon()), queue.ErrLost, "extend of the old holder")
	stale.Abandon()
	s.wantStats("r", queue.Stats{InFlight: 1})
	s.nothing("its new holder is alive")
	s.must(stop(), "extend of the new holder")
	s.must(fresh.Extend(s.soon()), "extend of the new holder")
	s.done(fresh)
	s.wantStats("r", queue.Stats{})
}

func staleHolderOfDone(s *suite) {
	s.open("r")
	s.publish("r", job("a"))
	stale, fresh := s.lose()
	s.done(fresh)
	s.wantErr(stale.Extend(s.soon()), queue.ErrLost, "extend of a job that is gone")
	s.wantErr(stale.Done(s.soon()), queue.ErrLost, "done of a job that is gone")
	s.wantPublished(s.publish("r", release(job("a"), 2)), 1, 0)
	s.wantErr(stale.Retry(s.soon(), 0, nil), queue.ErrLost, "retry of a job that is gone")
	s.wantErr(stale.HandBack(s.soon()), queue.ErrLost, "hand-back of a job that is gone")
	s.wantStats("r", queue.Stats{Pending: 1})
	l := s.leaseTrial("a")
	if l.Fence() <= fresh.Fence() {
		s.Fatalf("fence %d, want more than %d", l.Fence(), fresh.Fence())
	}
	s.done(l)
}

func closeValue(s *suite) {
	q := s.Open(s.T)
	s.open("r")
	ended := make(chan error, 1)
	go func() {
		_, err := q.Lease(s.soon(), request())
		ended <- err
	}()
	s.must(q.Close(), "close")
	s.wantErr(<-ended, queue.ErrClosed, "lease that waited when the value was closed")
	s.must(q.Close(), "close again")
	_, err := q.Lease(s.soon(), request())
	s.wantErr(err, queue.ErrClosed, "lease of a closed value")
	_, err = q.Publish(s.soon(), "r", []queue.Job{job("a")})
	s.wantErr(err, queue.ErrClosed, "publish of a closed value")
	s.wantErr(q.OpenRun(s.soon(), queue.Run{ID: "x", Class: class}), queue.ErrClosed, "open run of a closed value")
	_, err = q.ListRuns(s.soon())
	s.wantErr(err, queue.ErrClosed, "list runs of a closed value")
	s.publish("r", job("a"))
	s.done(s.leaseTrial("a"))
}

func restart(s *suite) {
	if s.Restart == nil {
		return // this broker promises nothing beyond its own life
	}
	s.open("r")
	s.open("capped", func(r *queue.Run) { r.Class = "capped"; r.Limits.MaxInFlight = 1 })
	s.open("paused", func(r *queue.Run) { r.Class = "paused"; r.Paused = true })
	s.publish("r", job("held"), job("delayed"), job("waiting"))
	s.publish("capped", jobs("c", 2)...)
	s.publish("paused", job("p"))
	held := s.leaseTrial("held")
	delayed := s.leaseTrial("delayed")
	s.must(delayed.Retry(s.soon(), s.TTL, []byte("again")), "retry")
	s.Restart(s.T)

	s.eventually("the holder extends its lease after the restart", func() bool {
		err := held.Extend(s.soon())
		if err != nil && !errors.Is(err, queue.ErrUnreachable) {
			s.Fatalf("extend after the restart: %v", err)
		}
		return err == nil
	})
	stop := s.keep(held)
	seen := map[string]queue.Job{}
	for range 2 {
		l := s.leaseAfterRestart()
		seen[l.Job().Trial] = l.Job()
		s.done(l)
	}
	if got := seen["delayed"]; got.Release != 2 || string(got.Body) != "again" {
		s.Fatalf("delayed job came back as %+v, want release 2 with its new body", got)
	}
	if _, ok := seen["waiting"]; !ok {
		s.Fatalf("leased %v, want the job that waited among them", seen)
	}
	s.must(stop(), "extend after the restart")
	s.done(held)
	s.wantStats("r", queue.Stats{})
	s.nothing("its run is paused", offers("paused"))
	first := s.lease(offers("capped"))
	s.nothing("its run is at its cap", offers("capped"))
	s.done(first)
	s.done(s.lease(offers("capped")))
	s.wantPublished(s.publish("r", job("waiting"), release(job("held"), 2)), 1, 1)
}

// leaseAfterRestart leases a job from a broker that may still be coming up.
func (s *suite) leaseAfterRestart() (l queue.Lease) {
	s.Helper()
	s.eventually("a job is leased after the restart", func() bool {
		var err error
		l, err = s.Queue.Lease(s.soon(), request())
		if err != nil && !errors.Is(err, queue.ErrUnreachable) {
			s.Fatalf("lease after the restart: %v", err)
		}
		return err == nil
	})
	return l
}
