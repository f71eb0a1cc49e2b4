// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemill/tidemill/queue"
)

var anyRequest = queue.Request{Pool: queue.DefaultPool, Offers: []string{"a"}}

// Whatever the runs are and whoever came when: a run that has jobs gets its turn
// within the weights of the others.
func TestTurnsStarveNobody(t *testing.T) {
	priorities := []queue.Priority{queue.Low, queue.Normal, queue.High}
	rapid.Check(t, func(t *rapid.T) {
		b := newBoard()
		jobs := map[string]int{}
		waited := map[string]int{}
		for i := range rapid.IntRange(2, 6).Draw(t, "runs") {
			r := queue.Run{ID: fmt.Sprint("r", i), Class: "a", Priority: rapid.SampledFrom(priorities).Draw(t, "priority")}
			b.put(openRun{Run: r.WithDefaults()}, uint64(i+1))
			jobs[r.ID] = rapid.IntRange(0, 40).Draw(t, "jobs")
		}
		late := rapid.IntRange(0, 60).Draw(t, "late")
		for turn := range 120 {
			if turn == late {
				jobs["r0"] += 20
				b.touch("r0")
			}
			tried := map[string]bool{}
			for {
				r, ok := b.next(anyRequest, tried, true)
				if !ok {
					break
				}
				tried[r.ID] = true
				if jobs[r.ID] == 0 {
					b.settle(r.ID, false, false)
					continue
				}
				jobs[r.ID]--
				b.settle(r.ID, true, jobs[r.ID] > 0)
				waited[r.ID] = 0
				for id, n := range jobs {
					if id == r.ID || n == 0 {
						continue
					}
					waited[id]++
					// Five others of 16 against a weight of 1, and some for rounding.
					if waited[id] > 5*16+12 {
						t.Fatalf("run %s with %d jobs waited %d turns", id, n, waited[id])
					}
				}
				break
			}
		}
	})
}

func TestTurnsSkipWhatCannotBeServed(t *testing.T) {
	b := newBoard()
	for i, r := range []queue.Run{
		{ID: "paused", Class: "a", Paused: true},
		{ID: "pool", Class: "a", Pool: "other"},
		{ID: "class", Class: "a-b"},
		{ID: "yes", Class: "a"},
	} {
		b.put(openRun{Run: r.WithDefaults()}, uint64(i+1))
	}
	tried := map[string]bool{}
	r, ok := b.next(anyRequest, tried, true)
	if !ok || r.ID != "yes" {
		t.Fatalf("turn of %q, %v, want yes", r.ID, ok)
	}
	tried["yes"] = true
	if r, ok := b.next(anyRequest, tried, true); ok {
		t.Fatalf("turn of %q, want nobody's", r.ID)
	}
	b.hold("yes", fullFor)
	if r, ok := b.next(anyRequest, nil, true); ok {
		t.Fatalf("turn of %q, which is full", r.ID)
	}
	if b.nextDue(anyRequest).IsZero() {
		t.Fatal("nobody looks at the full run again")
	}
	b.touch("yes")
	if _, ok := b.next(anyRequest, nil, false); !ok {
		t.Fatal("no turn for a run that has room again")
	}
}

func TestNames(t *testing.T) {
	r := queue.Run{ID: "r", Pool: "p", Class: "a-b"}
	if got, want := jobSubject(waitingSpace, r, "t"), "tidemill.trials.p.a-b.r.t"; got != want {
		t.Errorf("subject %q, want %q", got, want)
	}
	if got, want := runFilter("*", r), "tidemill.*.p.a-b.r.>"; got != want {
		t.Errorf("filter %q, want %q", got, want)
	}
	if got := trialOf(jobSubject(delayedSpace, r, "t")); got != "t" {
		t.Errorf("trial %q, want t", got)
	}
	if got, want := Redact("nats://u:p@a:1, tls://b:2"), "nats://xxxxx@a:1, tls://b:2"; got != want {
		t.Errorf("redacted %q, want %q", got, want)
	}
}

// FuzzIDOf: no headers make it panic, and what it accepts is valid.
func FuzzIDOf(f *testing.F) {
	f.Add("a.1.2", "")
	f.Add("", "r/a.1.2")
	f.Add("", "a.1.2")
	f.Fuzz(func(t *testing.T, job, id string) {
		got, err := idOf(func(key string) string {
			if key == jobHeader {
				return job
			}
			return id
		})
		if err == nil && got.Validate() != nil {
			t.Fatalf("accepted %+v", got)
		}
	})
}
