// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// suite is a topic at work: its test, its broker, and helpers that end the topic
// when something is wrong.
type suite struct {
	*testing.T
	*Harness
}

// class is what the suite's runs need unless they say otherwise.
const class queue.Class = "subprocess"

// soon bounds a wait for something that must come.
func (s *suite) soon() context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), s.Patience)
	s.Cleanup(cancel)
	return ctx
}

func (s *suite) must(err error, doing string, args ...any) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", fmt.Sprintf(doing, args...), err)
	}
}

func (s *suite) wantErr(err, want error, doing string) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("%s: error = %v, want %v", doing, err, want)
	}
}

func (s *suite) open(id string, change ...func(*queue.Run)) {
	s.Helper()
	run := queue.Run{ID: id, Class: class}
	for _, c := range change {
		c(&run)
	}
	s.must(s.Queue.OpenRun(s.soon(), run), "open run %s", id)
}

// job returns the first release of a trial.
func job(trial string) queue.Job {
	return queue.Job{ID: queue.ID{Trial: trial, Epoch: 1, Release: 1}, Body: []byte("body of " + trial)}
}

// release returns the same job as release n.
func release(j queue.Job, n int) queue.Job {
	j.Release = n
	return j
}

// jobs returns n jobs whose trials sort as they are published.
func jobs(prefix string, n int) []queue.Job {
	out := make([]queue.Job, n)
	for i := range out {
		out[i] = job(fmt.Sprintf("%s%06d", prefix, i))
	}
	return out
}

func (s *suite) publish(run string, jobs ...queue.Job) queue.Published {
	s.Helper()
	got, err := s.Queue.Publish(s.soon(), run, jobs)
	s.must(err, "publish %d jobs to run %s", len(jobs), run)
	return got
}

func (s *suite) wantPublished(got queue.Published, stored, skipped int) {
	s.Helper()
	if want := (queue.Published{Stored: stored, Skipped: skipped}); got != want {
		s.Fatalf("published %+v, want %+v", got, want)
	}
}

func nonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// request is what a worker of the suite asks for.
func request(change ...func(*queue.Request)) queue.Request {
	r := queue.Request{Worker: "worker-" + nonce()[:8], Offers: []string{"subprocess"}, Nonce: nonce()}
	for _, c := range change {
		c(&r)
	}
	return r
}

func offers(words ...string) func(*queue.Request) {
	return func(r *queue.Request) { r.Offers = words }
}

func inPool(pool string) func(*queue.Request) {
	return func(r *queue.Request) { r.Pool = pool }
}

func (s *suite) leaseFrom(q queue.Queue, change ...func(*queue.Request)) queue.Lease {
	s.Helper()
	l, err := q.Lease(s.soon(), request(change...))
	s.must(err, "lease")
	return l
}

func (s *suite) lease(change ...func(*queue.Request)) queue.Lease {
	s.Helper()
	return s.leaseFrom(s.Queue, change...)
}

// leaseTrial leases a job and wants it to be this trial's.
func (s *suite) leaseTrial(trial string, change ...func(*queue.Request)) queue.Lease {
	s.Helper()
	l := s.lease(change...)
	if got := l.Job().Trial; got != trial {
		s.Fatalf("leased trial %s, want %s", got, trial)
	}
	return l
}

// nothing wants that no job is handed out for a while.
func (s *suite) nothing(why string, change ...func(*queue.Request)) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), s.Quiet)
	defer cancel()
	l, err := s.Queue.Lease(ctx, request(change...))
	if err == nil {
		s.Fatalf("leased %s although %s", l.Job().ID, why)
	}
	s.wantErr(err, context.DeadlineExceeded, "lease although "+why)
}

func (s *suite) done(l queue.Lease) {
	s.Helper()
	s.must(l.Done(s.soon()), "done %s", l.Job().ID)
}

// wantStats waits for what the counts have to be: they may be those of a moment ago.
func (s *suite) wantStats(run string, want queue.Stats) {
	s.Helper()
	last := want
	s.eventually(fmt.Sprintf("stats of run %s are %+v", run, want), func() bool {
		got, err := s.Queue.Stats(s.soon(), run)
		s.must(err, "stats of run %s", run)
		if got != last {
			s.Logf("stats of run %s = %+v", run, got)
		}
		last = got
		return got == want
	})
}

// eventually asks until the answer is yes, and fails when patience ends.
func (s *suite) eventually(what string, yes func() bool) {
	s.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx := s.soon(); !yes(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.Fatalf("never happened: %s", what)
		}
	}
}

// keep extends the lease as a worker does until stop is called, which returns
// how it ended.
func (s *suite) keep(l queue.Lease) (stop func() error) {
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() {
		tick := time.NewTicker(s.TTL / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				ended <- nil
				return
			case <-tick.C:
			}
			err := l.Extend(ctx)
			if err != nil && ctx.Err() == nil && !errors.Is(err, queue.ErrUnreachable) {
				ended <- err
				return
			}
		}
	}()
	return func() error {
		cancel()
		return <-ended
	}
}
