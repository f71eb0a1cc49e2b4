// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
)

var keys = bundle.Keys{Run: "r"}

func newClaim() bundle.Claim {
	return bundle.Claim{TrialID: trial, TaskID: "t/1", Epoch: 1, Worker: "w", Nonce: bundle.NewNonce(), At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
}

func TestAttempts(t *testing.T) {
	s := memstore.New()
	if got, err := bundle.ListAttempts(t.Context(), s, keys, trial); len(got) != 0 || err != nil {
		t.Errorf("attempts of a new trial: %v, error %v", got, err)
	}
	var want []bundle.Attempt
	for n := 1; n <= 12; n++ { // more than 9, so that sorting by text would show
		c := newClaim()
		c.Attempt = 99 // doesn't matter
		got, before, err := bundle.ClaimAttempt(t.Context(), s, keys, c)
		if err != nil || got.Attempt != n || got.Nonce != c.Nonce || got.SchemaVersion != bundle.SchemaVersion {
			t.Fatalf("claim %+v, error %v; want number %d", got, err, n)
		}
		if diff := cmp.Diff(want, before); n > 1 && diff != "" {
			t.Fatalf("attempts before number %d (-want +got):\n%s", n, diff)
		}
		a := bundle.Attempt{Claim: got}
		if n%3 != 0 { // every third crashes
			end := bundle.AttemptEnd{SchemaVersion: 1, Attempt: n, Epoch: 1, Charged: true, At: c.At}
			if err := bundle.EndAttempt(t.Context(), s, keys, trial, end); err != nil {
				t.Fatal(err)
			}
			a.End = &end
		}
		want = append(want, a)
	}
	// Another trial's and strangers' objects don't count.
	for _, key := range []string{keys.Claim(strings.Repeat("f", 32), 50), keys.Attempts(trial) + "x.json", keys.Attempts(trial) + "01.json", keys.Attempts(trial) + "13.txt"} {
		if _, err := s.Create(t.Context(), key, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	got, err := bundle.ListAttempts(t.Context(), s, keys, trial)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

func TestFirstEndWins(t *testing.T) {
	s := memstore.New()
	c, _, err := bundle.ClaimAttempt(t.Context(), s, keys, newClaim())
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range []string{"first", "second"} {
		if err := bundle.EndAttempt(t.Context(), s, keys, trial, bundle.AttemptEnd{Attempt: c.Attempt, Why: why}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := bundle.ListAttempts(t.Context(), s, keys, trial)
	if err != nil || len(got) != 1 || got[0].End == nil || got[0].End.Why != "first" {
		t.Errorf("attempts %+v, error %v; want the first end", got, err)
	}
}

func TestClaimsRace(t *testing.T) {
	s := memstore.New()
	const n = 16
	got := make([]int, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			c, before, err := bundle.ClaimAttempt(t.Context(), s, keys, newClaim())
			if err != nil || len(before) != c.Attempt-1 {
				t.Errorf("claim %+v with %d before it, error %v", c, len(before), err)
			}
			got[i] = c.Attempt
		})
	}
	wg.Wait()
	seen := map[int]bool{}
	for _, a := range got {
		if a < 1 || a > n || seen[a] {
			t.Fatalf("numbers %v: want 1 to %d, each once", got, n)
		}
		seen[a] = true
	}
}

// TestClaimWithTrouble: whatever answer is lost, one call or its repetition gets one
// number, and no number is used up by mistake.
func TestClaimWithTrouble(t *testing.T) {
	unavailable := bundletest.Fail(bundle.ErrUnavailable)
	for _, c := range []struct {
		name   string
		faults []bundletest.Fault
		repeat bool
	}{
		{"answer lost", []bundletest.Fault{{Op: bundletest.OpCreate, Times: 1, Do: bundletest.DropAnswer()}}, false},
		{"never arrived", []bundletest.Fault{{Op: bundletest.OpCreate, Times: 1, Do: unavailable}}, true},
		{"can't list", []bundletest.Fault{{Op: bundletest.OpList, Times: 1, Do: unavailable}}, true},
		{"listing breaks off", []bundletest.Fault{{Op: bundletest.OpList, Times: 1, Do: bundletest.Cut(0)}}, true},
		{"reading breaks off", []bundletest.Fault{{Op: bundletest.OpGet, Times: 1, Do: bundletest.Cut(5)}}, true},
		{"answer lost, then down", []bundletest.Fault{
			{Op: bundletest.OpCreate, Times: 1, Do: bundletest.DropAnswer()},
			{Op: bundletest.OpGet, Key: "/2.json", Times: 1, Do: unavailable},
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := bundletest.NewFaulty(memstore.New())
			if _, _, err := bundle.ClaimAttempt(t.Context(), s, keys, newClaim()); err != nil {
				t.Fatal(err)
			}
			for _, f := range c.faults {
				s.Inject(f)
			}
			mine := newClaim()
			got, before, err := bundle.ClaimAttempt(t.Context(), s, keys, mine)
			if c.repeat {
				if err == nil {
					t.Fatal("no error, want one")
				}
				got, before, err = bundle.ClaimAttempt(t.Context(), s, keys, mine)
			}
			if err != nil || got.Attempt != 2 || got.Nonce != mine.Nonce || len(before) != 1 {
				t.Errorf("claim %+v with %d before it, error %v; want number 2", got, len(before), err)
			}
			again, _, err := bundle.ClaimAttempt(t.Context(), s, keys, mine)
			if err != nil || again != got {
				t.Errorf("repeated: %+v, error %v; want the same", again, err)
			}
		})
	}
}

func TestClaimNeedsItsOwnNonce(t *testing.T) {
	s := memstore.New()
	c := newClaim()
	got, _, err := bundle.ClaimAttempt(t.Context(), s, keys, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := bundle.EndAttempt(t.Context(), s, keys, trial, bundle.AttemptEnd{Attempt: got.Attempt}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bundle.ClaimAttempt(t.Context(), s, keys, c); err == nil {
		t.Error("the nonce of an attempt that ended was taken")
	}
	c.Nonce = ""
	if _, _, err := bundle.ClaimAttempt(t.Context(), s, keys, c); err == nil {
		t.Error("a claim without nonce was taken")
	}
}

// TestLostClaimKeepsItsNumber: an end whose claim is gone still takes its number.
func TestLostClaimKeepsItsNumber(t *testing.T) {
	s := memstore.New()
	if err := bundle.EndAttempt(t.Context(), s, keys, trial, bundle.AttemptEnd{Attempt: 4, Epoch: 2}); err != nil {
		t.Fatal(err)
	}
	c, before, err := bundle.ClaimAttempt(t.Context(), s, keys, newClaim())
	if err != nil || c.Attempt != 5 || len(before) != 1 || before[0].Claim.Epoch != 2 {
		t.Errorf("claim %+v after %+v, error %v; want number 5", c, before, err)
	}
}

func TestAttemptsGiveUpWithTheContext(t *testing.T) {
	s := bundletest.NewFaulty(memstore.New())
	s.Inject(bundletest.Fault{Op: bundletest.OpCreate, Do: bundletest.Fail(bundle.ErrExists)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	s.Inject(bundletest.Fault{Op: bundletest.OpList, Do: bundletest.Pass(), Hit: func(bundletest.Op, string) {
		if n++; n == 5 {
			cancel()
		}
	}})
	if _, _, err := bundle.ClaimAttempt(ctx, s, keys, newClaim()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	err := bundle.EndAttempt(ctx, s.Store, keys, trial, bundle.AttemptEnd{Attempt: 1})
	if !errors.Is(err, context.Canceled) || !strings.Contains(fmt.Sprint(err), trial) {
		t.Errorf("end: error %v, want %v and the trial", err, context.Canceled)
	}
}
