// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/queue"
)

func pauseResume(s *suite) {
	s.open("r")
	s.publish("r", jobs("t", 4)...)
	held := s.lease()
	s.must(s.Queue.PauseRun(s.soon(), "r"), "pause")
	s.must(s.Queue.PauseRun(s.soon(), "r"), "pause again")
	s.nothing("its run is paused")
	s.must(held.Extend(s.soon()), "extend while paused")
	s.done(held)
	s.wantPublished(s.publish("r", job("u")), 1, 0)
	s.wantStats("r", queue.Stats{Pending: 4})

	near, far := s.waiting(s.Queue), s.waiting(s.Open(s.T))
	s.nothing("its run is paused")
	s.must(s.Queue.ResumeRun(s.soon(), "r"), "resume")
	s.must(s.Queue.ResumeRun(s.soon(), "r"), "resume again")
	s.done(near())
	s.done(far())
	s.done(s.lease())
	s.done(s.lease())
	s.wantStats("r", queue.Stats{})
}

func openPaused(s *suite) {
	paused := func(r *queue.Run) { r.Paused = true }
	s.open("r", paused)
	s.publish("r", job("a"))
	collect := s.waiting(s.Queue)
	s.nothing("its run was opened paused")
	s.open("r") // opening anew without the flag resumes
	s.done(collect())
	s.open("r", paused)
	s.publish("r", job("b"))
	s.nothing("its run was opened anew, paused")
}

func runConflicts(s *suite) {
	s.open("r", func(r *queue.Run) { r.Pool = "p"; r.Class = "docker" })
	for name, run := range map[string]queue.Run{
		"pool":  {ID: "r", Pool: "q", Class: "docker"},
		"class": {ID: "r", Pool: "p", Class: "docker-gpu"},
	} {
		s.wantErr(s.Queue.OpenRun(s.soon(), run), queue.ErrConflict, "open the run with another "+name)
	}
	want := queue.Run{
		ID: "r", Pool: "p", Class: "docker", Priority: queue.High, Paused: true,
		Limits: queue.Limits{MaxInFlight: 3, MaxStartsPerSecond: 1.5},
	}
	s.must(s.Queue.OpenRun(s.soon(), want), "open the run with other limits")
	got, err := s.Open(s.T).ListRuns(s.soon())
	s.must(err, "list runs")
	if diff := cmp.Diff([]queue.Run{want}, got); diff != "" {
		s.Fatalf("runs (-want +got)\n%s", diff)
	}
}

// wantRevoked waits until the lease knows that it is over.
func (s *suite) wantRevoked(l queue.Lease) {
	s.Helper()
	select {
	case <-l.Revoked():
	case <-s.soon().Done():
		s.Fatalf("lease of %s was never revoked", l.Job().ID)
	}
}

func purge(s *suite) {
	s.open("r")
	all := jobs("t", 30)
	s.publish("r", all...)
	far := s.Open(s.T)
	near, elsewhere := s.lease(), s.leaseFrom(far)
	dropped, err := s.Queue.PurgeRun(s.soon(), "r")
	s.must(err, "purge")
	if dropped != 28 {
		s.Errorf("purge dropped %d, want the 28 that waited", dropped)
	}
	s.wantRevoked(near)
	s.wantRevoked(elsewhere)
	s.wantErr(near.Extend(s.soon()), queue.ErrLost, "extend after a purge")
	s.wantErr(elsewhere.Done(s.soon()), queue.ErrLost, "done after a purge")
	s.wantErr(near.Retry(s.soon(), 0, nil), queue.ErrLost, "retry after a purge")
	s.wantErr(near.Bury(s.soon(), "why"), queue.ErrLost, "bury after a purge")
	s.wantStats("r", queue.Stats{})
	s.nothing("all is purged")

	again := make([]queue.Job, len(all))
	for i, j := range all {
		again[i] = release(j, 2)
	}
	s.wantPublished(s.publish("r", again...), len(again), 0)
	seen := map[string]bool{}
	for range again {
		l := s.lease()
		seen[l.Job().String()] = true
		s.done(l)
	}
	if len(seen) != len(again) {
		s.Fatalf("%d jobs were handed out after the purge, want %d", len(seen), len(again))
	}
	s.wantStats("r", queue.Stats{})
}

func purgeDelayed(s *suite) {
	s.open("r")
	s.publish("r", job("a"))
	s.must(s.leaseTrial("a").Retry(s.soon(), s.Quiet/2, nil), "retry")
	_, err := s.Queue.PurgeRun(s.soon(), "r")
	s.must(err, "purge")
	s.wantStats("r", queue.Stats{})
	s.nothing("the delayed job was purged")
	s.wantPublished(s.publish("r", release(job("a"), 3)), 1, 0)
	s.done(s.leaseTrial("a"))
}

func purgeLeavesOthers(s *suite) {
	s.open("r")
	s.open("r-2")
	s.publish("r-2", jobs("t", 2)...)
	held := s.lease()
	s.publish("r", jobs("t", 2)...)
	_, err := s.Queue.PurgeRun(s.soon(), "r")
	s.must(err, "purge")
	s.wantStats("r-2", queue.Stats{Pending: 1, InFlight: 1})
	s.must(held.Extend(s.soon()), "extend a lease of another run")
	select {
	case <-held.Revoked():
		s.Fatal("a lease of another run was revoked")
	default:
	}
	s.done(held)
	s.done(s.lease())
}

// settled says that nothing is left to do of a run.
func settled(context.Context) (bool, error) { return true, nil }

func (s *suite) wantClosed(run string, want bool, settled func(context.Context) (bool, error), when string) {
	s.Helper()
	got, err := s.Queue.CloseRun(s.soon(), run, settled)
	s.must(err, "close run %s %s", run, when)
	if got != want {
		s.Fatalf("close run %s %s = %v, want %v", run, when, got, want)
	}
}

func closeRun(s *suite) {
	s.open("r")
	s.publish("r", jobs("t", 3)...)
	held := s.lease()
	s.wantClosed("r", false, settled, "with live jobs")
	s.done(held)
	s.done(s.lease())
	s.must(s.lease().Retry(s.soon(), s.Quiet/2, nil), "retry")
	s.wantClosed("r", false, settled, "with a delayed job")
	s.done(s.lease())
	s.wantClosed("r", false, func(context.Context) (bool, error) { return false, nil }, "that isn't settled")
	_, err := s.Queue.CloseRun(s.soon(), "r", func(context.Context) (bool, error) { return false, errors.New("no answer") })
	if err == nil || !strings.Contains(err.Error(), "no answer") {
		s.Fatalf("close a run of which nobody can tell: %v", err)
	}
	s.wantClosed("r", true, settled, "that is settled")
	s.wantClosed("r", true, settled, "that is closed")
	_, err = s.Queue.Publish(s.soon(), "r", []queue.Job{job("a")})
	s.wantErr(err, queue.ErrUnknownRun, "publish to a closed run")
	s.nothing("its run is closed")
	got, err := s.Queue.ListRuns(s.soon())
	if err != nil || len(got) != 0 {
		s.Fatalf("runs = %v, %v, want none", got, err)
	}
	s.open("r", func(r *queue.Run) { r.Pool = "other" }) // nothing binds the new one to the old one's place
	s.publish("r", job("a"))
	s.done(s.leaseTrial("a", inPool("other")))
}

// closeAndOpen has a run opened by somebody else in the moment in which it is closed.
func closeAndOpen(s *suite) {
	other := s.Open(s.T)
	s.open("r")
	s.wantClosed("r", false, func(ctx context.Context) (bool, error) {
		s.must(other.OpenRun(ctx, queue.Run{ID: "r", Class: class}), "open")
		_, err := other.Publish(ctx, "r", jobs("t", 3))
		s.must(err, "publish")
		return true, nil
	}, "while somebody opens it")
	for range 3 {
		s.done(s.lease())
	}
	s.wantClosed("r", true, settled, "at last")
}

func unknownRun(s *suite) {
	for name, call := range map[string]func() error{
		"pause":  func() error { return s.Queue.PauseRun(s.soon(), "nosuchrun") },
		"resume": func() error { return s.Queue.ResumeRun(s.soon(), "nosuchrun") },
		"purge":  func() error { _, err := s.Queue.PurgeRun(s.soon(), "nosuchrun"); return err },
		"stats":  func() error { _, err := s.Queue.Stats(s.soon(), "nosuchrun"); return err },
	} {
		s.wantErr(call(), queue.ErrUnknownRun, name+" of a run that is not open")
	}
}

func stats(s *suite) {
	got, err := s.Queue.ListRuns(s.soon())
	if err != nil || len(got) != 0 {
		s.Fatalf("runs of a fresh broker = %v, %v", got, err)
	}
	for _, id := range []string{"b", "a", "c"} {
		s.open(id)
	}
	runs, err := s.Queue.ListRuns(s.soon())
	s.must(err, "list runs")
	var want []queue.Run
	for _, id := range []string{"a", "b", "c"} {
		want = append(want, queue.Run{ID: id, Pool: queue.DefaultPool, Class: class, Priority: queue.Normal})
	}
	if diff := cmp.Diff(want, runs); diff != "" {
		s.Fatalf("runs (-want +got)\n%s", diff)
	}

	s.publish("a", jobs("t", 6)...)
	held := s.lease()
	s.must(s.lease().Retry(s.soon(), time.Hour, nil), "retry")
	s.must(s.lease().Bury(s.soon(), "why"), "bury")
	s.done(s.lease())
	s.wantStats("a", queue.Stats{Pending: 2, Delayed: 1, InFlight: 1, Dead: 1})
	s.wantStats("b", queue.Stats{})
	live, err := s.Open(s.T).Stats(s.soon(), "a")
	if err != nil || live.Live() != 4 {
		s.Fatalf("live = %d, %v, want 4", live.Live(), err)
	}
	s.done(held)
}

func invalidArguments(s *suite) {
	for i, run := range []queue.Run{
		{},
		{ID: "UPPER", Class: class},
		{ID: "a.b", Class: class},
		{ID: "r"},
		{ID: "r", Class: "b-a"},
		{ID: "r", Class: class, Pool: "a b"},
		{ID: "r", Class: class, Priority: "urgent"},
		{ID: "r", Class: class, Limits: queue.Limits{MaxInFlight: -1}},
	} {
		s.wantErr(s.Queue.OpenRun(s.soon(), run), queue.ErrInvalid, fmt.Sprintf("open invalid run %d", i))
	}
	s.open("r")
	s.publish("r", job("a"))
	for name, bad := range map[string]func(*queue.Request){
		"no worker":   func(r *queue.Request) { r.Worker = "" },
		"bad pool":    func(r *queue.Request) { r.Pool = "*" },
		"no offers":   func(r *queue.Request) { r.Offers = nil },
		"no nonce":    func(r *queue.Request) { r.Nonce = "" },
		"short nonce": func(r *queue.Request) { r.Nonce = "abc" },
	} {
		_, err := s.Queue.Lease(s.soon(), request(bad))
		s.wantErr(err, queue.ErrInvalid, "lease with "+name)
	}
	s.done(s.leaseTrial("a"))
}

// backlog wants what scales a fleet: what waits, runs and is due soon, up to the caps.
func backlog(s *suite) {
	want := func(when string, want ...queue.Demand) {
		s.Helper()
		if want == nil {
			want = []queue.Demand{}
		}
		got, err := s.Open(s.T).Backlog(s.soon())
		s.must(err, "backlog %s", when)
		if diff := cmp.Diff(want, got); diff != "" {
			s.Fatalf("backlog %s (-want +got)\n%s", when, diff)
		}
	}
	demand := func(pool string, class queue.Class, slots, waiting, inFlight, soon int) queue.Demand {
		return queue.Demand{Pool: pool, Class: class, Slots: slots, Jobs: queue.Jobs{Waiting: waiting, InFlight: inFlight, DueSoon: soon}}
	}
	none := func(pool string, class queue.Class) queue.Demand { return demand(pool, class, 0, 0, 0, 0) }
	want("of a fresh broker")
	s.open("a")
	s.open("b")
	s.open("capped", capped(3), func(r *queue.Run) { r.Class = "docker" })
	s.open("far", func(r *queue.Run) { r.Pool = "far" })
	want("of runs without jobs", none(queue.DefaultPool, "docker"), none(queue.DefaultPool, class), none("far", class))
	s.publish("a", jobs("t", 5)...)
	held := s.lease()
	soon, late := s.lease(), s.lease()
	s.must(soon.Retry(s.soon(), queue.DueSoon/2, nil), "retry")
	s.must(late.Retry(s.soon(), 10*queue.DueSoon, nil), "retry")
	s.publish("b", jobs("t", 2)...)
	s.publish("capped", jobs("t", 10)...)
	s.publish("far", job("x"))
	all := []queue.Demand{
		demand(queue.DefaultPool, "docker", 3, 10, 0, 0), demand(queue.DefaultPool, class, 2+1+1+2, 2+2, 1, 1), demand("far", class, 1, 1, 0, 0),
	}
	want("of all", all...)
	s.must(s.Queue.PauseRun(s.soon(), "a"), "pause")
	all[1].Slots = 2
	want("with a paused run", all...)
	_, err := s.Queue.PurgeRun(s.soon(), "b")
	s.must(err, "purge")
	s.wantClosed("b", true, settled, "without jobs")
	all[1] = demand(queue.DefaultPool, class, 0, 2, 1, 1)
	want("with a closed run", all...)
	s.must(s.Queue.ResumeRun(s.soon(), "a"), "resume")
	s.done(held)
	s.done(s.lease())
	s.done(s.lease())
	all[1] = demand(queue.DefaultPool, class, 1, 0, 0, 1)
	want("when all but the delayed ones are done", all...)
}
