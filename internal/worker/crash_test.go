// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/runtime/scripted"
)

var errDead = errors.New("the process is dead")

// dieAt makes the machine die at its nth call of the store, ahead of the call's effect or
// behind it: from then on it reaches neither store nor queue.
func (m *machine) dieAt(n int, behind bool) {
	die := func(bundletest.Op, string) {
		_ = m.queue.Close()
		m.Hurry()
	}
	if behind {
		m.store.Inject(bundletest.Fault{After: n, Times: 1, Do: bundletest.DropAnswer(), Hit: die})
	}
	m.store.Inject(bundletest.Fault{After: n, Do: bundletest.Fail(errDead), Hit: die})
}

// die makes the machine reach neither store nor queue, and waits until nothing of it runs.
func (m *machine) die() {
	m.l.t.Helper()
	m.store.Inject(bundletest.Fault{Do: bundletest.Fail(errDead)})
	if err := m.queue.Close(); err != nil {
		m.l.t.Fatal(err)
	}
	m.Hurry()
	<-m.Stopped()
}

// calls counts what a machine asked its store.
func (m *machine) calls() (n int) {
	for _, op := range []bundletest.Op{bundletest.OpCreate, bundletest.OpPut, bundletest.OpGet, bundletest.OpGetRange, bundletest.OpList} {
		n += m.store.Calls(op)
	}
	return n
}

// Wherever a worker dies, another one makes the trial's one commit, and what the first
// one left stays.
func TestCrashAnywhere(t *testing.T) {
	oneByOne := func(c *worker.Config) { c.UploadParallel = 1 }
	total := 0
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		m := l.machine(oneByOne)
		l.finish(m.start())
		total = m.calls()
	})
	if total < 12 {
		t.Fatalf("%d calls in all; too few to believe", total)
	}
	for n := range total {
		for _, behind := range []bool{false, true} {
			t.Run(fmt.Sprintf("call %d behind %v", n, behind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { crashAt(t, n, behind, oneByOne) })
			})
		}
	}
}

func crashAt(t *testing.T, n int, behind bool, change func(*worker.Config)) {
	l := newLab(t, "", passes("a"))
	first := l.machine(change)
	first.dieAt(n, behind)
	first.start()
	<-first.Stopped()
	left := map[string]string{}
	for info, err := range l.store.List(t.Context(), l.keys.Prefix()) {
		if err != nil {
			t.Fatal(err)
		}
		left[info.Key] = l.read(info.Key)
	}
	committed := len(l.commits())

	second := l.machine(change)
	l.finish(second.start())
	c := l.commit(0)
	as := l.attempts(0)
	if committed == 1 && (c.Attempt != 1 || len(as) != 1) {
		t.Errorf("it was committed before the crash; now attempt %d of %d is", c.Attempt, len(as))
	}
	for _, a := range as {
		if a.Claim.Worker == "w1" && committed == 0 && a.End != nil && a.End.Charged {
			t.Error("the crash was charged")
		}
	}
	for key, body := range left {
		if l.read(key) != body {
			t.Errorf("%s was changed", key)
		}
	}
}

// Two workers have the same trial, because the first one's lease ran out unnoticed. The
// second commits first.
func TestTwoWorkersOneTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", task{id: "a", agent: "on-attempt 1 block slow"})
		first := l.machine(func(c *worker.Config) { c.OutageGrace = 1 << 40 })
		first.queue.deaf = true
		first.start()
		l.await("slow")
		first.queue.setAway(true) // its lease runs out, and it goes on
		// On another provider, or the sandbox's name would be taken.
		l.provider = &scripted.Provider{}
		second := l.machine().start()
		if c := l.events.kind(worker.Committed, 1); c.Attempt != 2 {
			t.Errorf("committed %+v", c)
		}
		l.control.Release("", "slow")
		if e := l.events.kind(worker.Found, 1); e.Attempt != 2 {
			t.Errorf("found %+v", e)
		}
		first.end()
		second.end()
		if c := l.commit(0); c.Attempt != 2 || c.Worker != "w2" {
			t.Errorf("commit %+v", c)
		}
		a := l.attempts(0)
		if len(a) != 2 || a[0].End == nil || a[0].End.Committed || !a[0].End.Superseded || !a[1].End.Committed {
			t.Errorf("attempts %+v", a)
		}
		if !l.sealed(l.rows[0], 1) {
			t.Error("the superseded attempt's files are not kept")
		}
		r, err := bundle.ReadRecord[bundle.Result](t.Context(), l.store, l.keys.Result("a", 0))
		if err != nil || r.Attempt != 2 || r.Attempts != 2 {
			t.Errorf("result %+v, %v", r, err)
		}
		if a[1].Claim.Fence <= a[0].Claim.Fence {
			t.Errorf("fence %d after %d", a[1].Claim.Fence, a[0].Claim.Fence)
		}
	})
}
