// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// tick is how often the driver looks.
const tick = 25 * time.Millisecond

// stallAfter is how long nothing may be committed while nothing is broken.
const stallAfter = 90 * time.Second

// drive lets the workers run until each trial has its commit, and breaks what the plan
// says when it says.
func (r *rig) drive(plan []fault) {
	r.t.Helper()
	ctx := r.t.Context()
	defer r.countDeliveries(ctx)()
	var active []*started
	defer func() {
		for _, s := range active {
			s.end()
			r.disturbed(s.fault, s.at)
		}
	}()
	begun := time.Now()
	last, progress, looked := 0, begun, begun
	for {
		r.staff(true)
		commits, now := r.tap.committed(), time.Now()
		active = slices.DeleteFunc(active, func(s *started) bool {
			over := s.over(now, commits)
			if over {
				s.end()
				r.disturbed(s.fault, s.at)
			}
			return over
		})
		plan = r.due(plan, commits, &active)
		if commits > last || len(active) > 0 {
			last, progress = commits, now
		}
		if now.Sub(looked) > time.Second && commits >= r.trials-len(r.members) {
			looked = now
			if list, err := r.listCommits(ctx); err == nil && len(list) >= r.trials && len(active) == 0 {
				r.note("every trial has its commit")
				r.report.NeverBegun = len(plan)
				return
			}
		}
		if time.Since(progress) > stallAfter {
			r.report.Stalled = true
			r.problem("nothing was committed for %v although nothing is broken; %d of %d have a commit", stallAfter, commits, r.trials)
			return
		}
		if ctx.Err() != nil || time.Since(begun) > *patience {
			r.problem("not done after %v: %d of %d have a commit", time.Since(begun).Round(time.Second), commits, r.trials)
			return
		}
		time.Sleep(tick) // the driver is a clock
	}
}

// countDeliveries looks now and then how many there were, until end is called: the run leaves
// the queue when it is complete, and takes the number along.
func (r *rig) countDeliveries(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	most := make(chan uint64)
	go func() {
		var seen uint64
		for ctx.Err() == nil {
			if _, n, err := r.monitor.jobs(ctx); err == nil {
				seen = max(seen, n)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second): // nothing tells
			}
		}
		most <- seen
	}()
	return func() {
		cancel()
		r.report.Deliveries = max(r.report.Deliveries, <-most)
	}
}

// due begins the faults whose time has come, and returns those that are left.
func (r *rig) due(plan []fault, commits int, active *[]*started) (left []fault) {
	for i, f := range plan {
		if f.At > commits {
			return append(left, plan[i:]...)
		}
		end, err := r.begin(f)
		switch {
		case errors.Is(err, errNotNow):
			left = append(left, f)
			continue
		case errors.Is(err, errNever):
			r.report.count(f.Kind).Skipped++
			continue
		case err != nil:
			r.problem("%s: %v", f, err)
			continue
		}
		r.report.count(f.Kind).Injected++
		if end != nil {
			*active = append(*active, &started{fault: f, at: time.Now(), commits: commits, end: end})
		}
	}
	return left
}

// restarts of workers that ended: a machine is not replaced at once.
const restartAfter = 500 * time.Millisecond

// staff notes who is gone, and sees to it that others take their places.
func (r *rig) staff(hire bool) {
	for _, m := range r.members {
		if m.now != nil && m.now.gone() {
			r.farewell(m)
			m.now = nil
			m.next = time.Now().Add(restartAfter)
		}
		if m.now != nil || !hire || time.Now().Before(m.next) {
			continue
		}
		w, err := r.startWorker(m)
		if err != nil {
			r.problem("worker %d could not be started: %v", m.n, err)
			m.next = time.Now().Add(time.Minute)
			continue
		}
		m.now = w
		r.report.Workers++
	}
}

// farewell says what is to be said of a worker that ended.
func (r *rig) farewell(m *member) {
	w := m.now
	err := w.exit()
	switch {
	case w.killed:
	case w.asked && err == nil:
	case w.asked:
		r.problem("worker %d was asked to stop, and ended with %v; %s\n%s", m.n, err, w.log, w.tail())
	case w.named() == "":
		// A store or queue that is broken just then is waited for.
		r.problem("worker %d could not begin: %v; %s\n%s", m.n, err, w.log, w.tail())
	default:
		r.problem("worker %d ended by itself: %v; %s\n%s", m.n, err, w.log, w.tail())
	}
}

// drain waits until nothing is in the queue, while workers go on.
func (r *rig) drain() {
	r.t.Helper()
	ctx := r.t.Context()
	var left uint64
	var err error
	for end := time.Now().Add(4*r.lease + 30*time.Second); time.Now().Before(end) && ctx.Err() == nil; {
		r.staff(true)
		var deliveries uint64
		if left, deliveries, err = r.monitor.jobs(ctx); err == nil {
			r.report.Deliveries = max(r.report.Deliveries, deliveries)
			if left == 0 {
				r.note("the queue is empty")
				return
			}
		}
		time.Sleep(100 * time.Millisecond) // nothing tells
	}
	r.problem("the queue is not empty: %d jobs are left, error %v", left, err)
}

// dismiss asks every worker to stop, and waits for it.
func (r *rig) dismiss() {
	r.staff(false)
	for _, m := range r.members {
		if m.now != nil {
			m.now.asked = true
			m.now.signal(syscall.SIGCONT)
			m.now.signal(syscall.SIGTERM)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), time.Minute)
	defer cancel()
	for _, m := range r.members {
		if m.now == nil {
			continue
		}
		select {
		case <-m.now.ended:
		case <-ctx.Done():
			r.problem("worker %d did not end within a minute of SIGTERM; %s", m.n, m.now.log)
			m.now.killed = true
			m.now.signal(syscall.SIGKILL)
			<-m.now.ended
		}
	}
	r.staff(false)
}

// problem is what makes the test fail.
func (r *rig) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.report.Problems = append(r.report.Problems, text)
	r.note("PROBLEM: %s", text)
}
