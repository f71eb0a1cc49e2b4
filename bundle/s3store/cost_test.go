// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
)

// TestWhatATrialCosts holds the numbers of docs/s3.md: a service bills requests.
func TestWhatATrialCosts(t *testing.T) {
	l := newLab(t)
	s := opened(t, l.faulty())
	w, err := bundle.NewWriter(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if err := w.WriteFile(fmt.Sprintf("logs/%d.log", i), []byte("text")); err != nil {
			t.Fatal(err)
		}
	}
	sealed, err := w.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.proxy.Seen()
	keys := bundle.Keys{Run: "r"}
	trial := bundle.TrialID("store", keys.Run, "task", 0)
	for _, step := range []struct {
		name string
		want map[string]int
		do   func(context.Context) error
	}{
		{"look for a commit, claim", map[string]int{"GET": 1, "list": 1, "PUT": 1}, func(ctx context.Context) error {
			if _, err := bundle.FindCommit(ctx, s, keys, trial, 1); err != nil {
				return err
			}
			_, _, err := bundle.ClaimAttempt(ctx, s, keys, bundle.Claim{TrialID: trial, TaskID: "task", Epoch: 1, Nonce: bundle.NewNonce()})
			return err
		}},
		{"upload", map[string]int{"PUT": 9}, func(ctx context.Context) error {
			return bundle.Upload(ctx, s, keys.AttemptFiles("task", 0, 1), sealed, 4)
		}},
		{"commit, end, result", map[string]int{"PUT": 3}, func(ctx context.Context) error {
			if _, _, err := bundle.WriteCommit(ctx, s, keys, bundle.Commit{TrialID: trial, TaskID: "task", Epoch: 1, Attempt: 1, Nonce: "n"}); err != nil {
				return err
			}
			if err := bundle.EndAttempt(ctx, s, keys, trial, bundle.AttemptEnd{Attempt: 1, Epoch: 1}); err != nil {
				return err
			}
			return bundle.WriteResult(ctx, s, keys, bundle.Result{TrialID: trial, TaskID: "task", Epoch: 1, Attempt: 1})
		}},
	} {
		if err := step.do(t.Context()); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		got := map[string]int{}
		for _, r := range l.proxy.Seen() {
			method, rest, _ := strings.Cut(r, " ")
			if strings.Contains(rest, "list-type=") {
				method = "list"
			}
			got[method]++
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}
