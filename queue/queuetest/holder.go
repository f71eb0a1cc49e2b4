// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"time"

	"github.com/tidemill/tidemill/queue"
)

func as(worker string) func(*queue.Request) {
	return func(r *queue.Request) { r.Worker = worker }
}

func holder(s *suite) {
	far := s.Open(s.T)
	want := func(run, trial, worker, when string) {
		s.Helper()
		// Holders may have time to come back first.
		var got string
		s.eventually("somebody can say who holds "+trial, func() bool {
			var err error
			got, err = far.Holder(s.soon(), run, trial)
			return err == nil
		})
		if got != worker {
			s.Fatalf("%s %s is held by %q, want %q", trial, when, got, worker)
		}
	}
	want("nowhere", "a", "", "of a run that is not open")
	s.open("r")
	want("r", "a", "", "that was never published")
	s.publish("r", job("a"), job("b"))
	want("r", "a", "", "that waits")
	l := s.leaseTrial("a", as("one"))
	stop := s.keep(l)
	want("r", "a", "one", "that is leased")
	want("r", "b", "", "beside one that is leased")
	want("other", "a", "", "of another run")
	s.must(stop(), "extend")
	s.must(l.Extend(s.soon()), "extend")
	want("r", "a", "one", "whose lease was extended")
	s.done(l)
	want("r", "a", "", "that is done")

	l = s.leaseTrial("b", as("two"))
	s.must(l.Retry(s.soon(), time.Hour, nil), "retry")
	want("r", "b", "", "that was put back")

	// A holder that is silent holds nothing when its time is up, and then whoever takes over.
	s.publish("r", job("c"))
	l = s.leaseTrial("c", as("three"))
	want("r", "c", "three", "that is leased")
	l.Abandon()
	s.must(s.Queue.PauseRun(s.soon(), "r"), "pause")
	s.eventually("the lease of a silent holder is over", func() bool {
		worker, err := far.Holder(s.soon(), "r", "c")
		return err == nil && worker == ""
	})
	s.must(s.Queue.ResumeRun(s.soon(), "r"), "resume")
	l = s.leaseTrial("c", as("four"))
	want("r", "c", "four", "that was taken over")
	s.done(l)

	s.must(far.Close(), "close")
	_, err := far.Holder(s.soon(), "r", "c")
	s.wantErr(err, queue.ErrClosed, "holder of a closed value")
}
