// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
)

// putBack decides that trials are done again.
func (l *lab) putBack(o producer.PutBack) *producer.Reopened {
	l.t.Helper()
	p := producer.Producer{Store: l.store, StoreUUID: storeUUID, Queue: l.queue, Log: zerolog.Nop()}
	re, err := p.PutBack(l.t.Context(), l.rec, o)
	if err != nil {
		l.t.Fatal(err)
	}
	return re
}

// epochs returns the commits of row n, by epoch.
func (l *lab) epochs(n int) map[int]bundle.Commit {
	l.t.Helper()
	out := map[int]bundle.Commit{}
	for epoch := 1; ; epoch++ {
		c, err := bundle.FindCommit(l.t.Context(), l.store, l.keys, l.rows[n].TrialID, epoch)
		if err != nil {
			l.t.Fatal(err)
		}
		if c == nil {
			return out
		}
		if ix, err := bundle.Verify(l.t.Context(), l.store, l.keys.AttemptFiles(c.TaskID, c.TrialIndex, c.Attempt)); err != nil || ix.SHA256 != c.IndexSHA256 {
			l.t.Errorf("bundle of epoch %d: %v", epoch, err)
		}
		out[epoch] = *c
	}
}

// A regrade runs no agent, a retry does, and a regrade after that is of the newer agent.
func TestLaterEpochs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", task{
			id: "a", agent: "write artifacts/ran yes\nprint the agent ran",
			grade: "require-file artifacts/ran\non-attempt 1 write verifier/reward.txt 0\nwrite verifier/reward.txt 1",
		})
		l.finish(l.machine().start())
		for _, kind := range []string{bundle.ControlRegrade, bundle.ControlRegrade, bundle.ControlRetry, bundle.ControlRegrade} {
			l.putBack(producer.PutBack{Kind: kind, By: "test"})
			l.finish(l.machine().start())
		}
		got := l.epochs(0)
		if len(got) != 5 {
			t.Fatalf("%d epochs are committed, want 5", len(got))
		}
		for epoch, want := range map[int]*bundle.Regraded{
			1: nil, 2: {Epoch: 1, Attempt: 1}, 3: {Epoch: 1, Attempt: 1}, 4: nil, 5: {Epoch: 4, Attempt: 4},
		} {
			c := got[epoch]
			if want != nil {
				want.Pack = l.rows[0].Pack
			}
			if (c.Regraded == nil) != (want == nil) || want != nil && *c.Regraded != *want {
				t.Errorf("epoch %d: %+v, want %+v", epoch, c.Regraded, want)
			}
			if c.Attempt != epoch || !c.Outcome.Scored {
				t.Errorf("epoch %d: attempt %d, %+v", epoch, c.Attempt, c.Outcome)
			}
			if want := "regraded"; (strings.Join(c.Outcome.Flags, " ") == want) != (c.Regraded != nil) {
				t.Errorf("epoch %d: flags %v", epoch, c.Outcome.Flags)
			}
			if log := l.read(l.keys.AttemptFiles("a", 0, c.Attempt) + "logs/agent.log"); !strings.Contains(log, "the agent ran") {
				t.Errorf("epoch %d: agent.log %q", epoch, log)
			}
		}
		if as := l.attempts(0); len(as) != 5 {
			t.Errorf("%d attempts", len(as))
		}
	})
}

// A worker that dies in a regrade leaves it to the next one.
func TestRegradeAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", task{
			id: "a", agent: "write artifacts/ran yes",
			grade: "require-file artifacts/ran\non-attempt 2 block grader\nwrite verifier/reward.txt 1",
		})
		l.finish(l.machine().start())
		l.putBack(producer.PutBack{Kind: bundle.ControlRegrade})
		first := l.machine().start()
		l.await("grader")
		first.die()
		l.finish(l.machine().start())
		got := l.epochs(0)
		if c := got[2]; len(got) != 2 || c.Attempt != 3 || c.Regraded == nil || !c.Grade.BinaryPass {
			t.Errorf("%d epochs, the second: %+v", len(got), c)
		}
	})
}

// A bundle that was tampered with is not graded.
func TestRegradeOfATamperedBundle(t *testing.T) {
	for name, file := range map[string]string{"an artifact": "artifacts/ran", "the index": bundle.IndexName} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "", task{id: "a", agent: "write artifacts/ran yes"})
				l.finish(l.machine().start())
				l.putBack(producer.PutBack{Kind: bundle.ControlRegrade})
				key := l.keys.AttemptFiles("a", 0, 1) + file
				if err := l.store.Put(t.Context(), key, strings.NewReader(strings.Replace(l.read(key), "e", "E", 1)), -1); err != nil {
					t.Fatal(err)
				}
				l.finish(l.machine().start())
				c, err := bundle.FindCommit(t.Context(), l.store, l.keys, l.rows[0].TrialID, 2)
				if err != nil || c == nil || c.Outcome.Scored || c.Outcome.TerminationReason != bundle.ReasonInfraError || c.Attempt != 2 || c.Regraded == nil {
					t.Fatalf("%+v, %v", c, err)
				}
			})
		})
	}
}

// An epoch that nobody decided makes no sense: its job is buried, and its trial untouched.
func TestEpochThatNobodyOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		m := l.machine().start()
		l.finish(m)
		l.putBack(producer.PutBack{Kind: bundle.ControlRetry})
		if err := l.store.Delete(t.Context(), l.keys.ControlRecord(1)); err != nil {
			t.Fatal(err)
		}
		m = l.machine().start()
		l.finish(m)
		dead, err := l.queue.DeadLetters(t.Context(), "lab", 0)
		if err != nil || len(dead) != 1 || !strings.Contains(dead[0].Reason, "no control record") {
			t.Errorf("dead letters %+v, %v", dead, err)
		}
		if n, err := dispatch.CountDone(t.Context(), l.store, "lab"); err != nil || n != 1 {
			t.Errorf("%d done, %v", n, err)
		}
	})
}
