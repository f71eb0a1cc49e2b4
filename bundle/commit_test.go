// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
)

func newCommit(attempt int) bundle.Commit {
	score, took := 0.5, bundle.Seconds(1.25)
	return bundle.Commit{
		SchemaVersion: 1, TrialID: trial, TaskID: "t/1", TrialIndex: 3, Epoch: 1, Attempt: attempt, Nonce: bundle.NewNonce(), Worker: "w",
		Plan: bundle.PlanRef{Part: 1, Row: 2}, IndexSHA256: strings.Repeat("0", 64),
		Outcome: bundle.Outcome{Status: bundle.Completed, TerminationReason: bundle.ReasonAgentDone, FailureClass: bundle.NoFailure, Scored: true},
		Grade:   bundle.Grade{Scored: true, Score: &score, Rewards: map[string]float64{"reward": 0.5}},
		Metrics: bundle.Metrics{SchemaVersion: 1, LatencyTotalS: 2, AgentSpanDurationS: &took},
		At:      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func TestCommit(t *testing.T) {
	s := memstore.New()
	if c, err := bundle.FindCommit(t.Context(), s, keys, trial, 1); c != nil || err != nil {
		t.Errorf("commit of an open trial: %v, error %v", c, err)
	}
	mine := newCommit(1)
	winner, won, err := bundle.WriteCommit(t.Context(), s, keys, mine)
	if err != nil || !won {
		t.Fatalf("won %v, error %v", won, err)
	}
	if diff := cmp.Diff(mine, winner); diff != "" {
		t.Errorf("winner (-want +got):\n%s", diff)
	}
	got, err := bundle.FindCommit(t.Context(), s, keys, trial, 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&mine, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	// Our own, again.
	if _, won, err := bundle.WriteCommit(t.Context(), s, keys, mine); err != nil || !won {
		t.Errorf("repeated: won %v, error %v", won, err)
	}
	// Another attempt, also one that shares the nonce.
	other, shared := newCommit(2), mine
	shared.Attempt = 2
	for _, c := range []bundle.Commit{other, shared} {
		winner, won, err = bundle.WriteCommit(t.Context(), s, keys, c)
		if err != nil || won {
			t.Errorf("another attempt: won %v, error %v", won, err)
		}
		if diff := cmp.Diff(mine, winner); diff != "" {
			t.Errorf("winner (-want +got):\n%s", diff)
		}
	}
	// Another epoch is another matter.
	other.Epoch = 2
	if _, won, err := bundle.WriteCommit(t.Context(), s, keys, other); err != nil || !won {
		t.Errorf("next epoch: won %v, error %v", won, err)
	}
}

func TestCommitsRace(t *testing.T) {
	s := memstore.New()
	const n = 16
	winners := make([]bundle.Commit, n)
	won := make([]bool, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var err error
			winners[i], won[i], err = bundle.WriteCommit(t.Context(), s, keys, newCommit(i+1))
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wins := 0
	for i := range n {
		if winners[i].Attempt != winners[0].Attempt || won[i] != (winners[i].Attempt == i+1) {
			t.Errorf("attempt %d: winner %d, won %v", i+1, winners[i].Attempt, won[i])
		}
		if won[i] {
			wins++
		}
	}
	if wins != 1 {
		t.Errorf("%d won", wins)
	}
}

func TestCommitWithTrouble(t *testing.T) {
	s := bundletest.NewFaulty(memstore.New())
	s.Inject(bundletest.Fault{Op: bundletest.OpCreate, Times: 1, Do: bundletest.DropAnswer()})
	if _, won, err := bundle.WriteCommit(t.Context(), s, keys, newCommit(1)); err != nil || !won {
		t.Errorf("answer lost: won %v, error %v", won, err)
	}
	// Somebody else's is there and can't be read: nothing is known.
	s.Inject(bundletest.Fault{Op: bundletest.OpGet, Times: 1, Do: bundletest.Fail(bundle.ErrUnavailable)})
	if _, won, err := bundle.WriteCommit(t.Context(), s, keys, newCommit(2)); !errors.Is(err, bundle.ErrUnavailable) || won {
		t.Errorf("winner unreadable: won %v, error %v", won, err)
	}
	s.Inject(bundletest.Fault{Op: bundletest.OpCreate, Key: ".2.json", Do: bundletest.Fail(bundle.ErrNoSpace)})
	next := newCommit(2)
	next.Epoch = 2
	if _, won, err := bundle.WriteCommit(t.Context(), s, keys, next); !errors.Is(err, bundle.ErrNoSpace) || won {
		t.Errorf("no room: won %v, error %v", won, err)
	}
	if c, err := bundle.FindCommit(t.Context(), s, keys, trial, 2); c != nil || err != nil {
		t.Errorf("after that: commit %v, error %v", c, err)
	}
}

func TestCommitUnderAWrongKey(t *testing.T) {
	s := memstore.New()
	if err := bundle.CreateRecord(t.Context(), s, keys.Commit(trial, 2), newCommit(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.FindCommit(t.Context(), s, keys, trial, 2); err == nil || !strings.Contains(err.Error(), "epoch 1") {
		t.Errorf("error %v, want one that names the epoch of the record", err)
	}
}

func TestWriteResult(t *testing.T) {
	s := memstore.New()
	for epoch := 1; epoch <= 2; epoch++ {
		if err := bundle.WriteResult(t.Context(), s, keys, bundle.Result{TrialID: trial, TaskID: "t/1", TrialIndex: 3, Epoch: epoch}); err != nil {
			t.Fatal(err)
		}
		got, err := bundle.ReadRecord[bundle.Result](t.Context(), s, "runs/r/trials/t~2F1/3/result.json")
		if err != nil || got.Epoch != epoch || got.SchemaVersion != 1 {
			t.Errorf("result %+v, error %v; want epoch %d", got, err, epoch)
		}
	}
}
