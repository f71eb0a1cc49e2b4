// SPDX-License-Identifier: Apache-2.0

package dirstore_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
)

// BenchmarkTrial is what an ordinary trial costs a store: claim, a bundle of eight
// files and the index, commit, end and result.
func BenchmarkTrial(b *testing.B) {
	for _, at := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("trials-at-once-%d", at), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "store"))
			bundles := make([]bundle.Sealed, b.N) // a store may take each one away
			for i := range bundles {
				bundles[i] = sealTrial(b, filepath.Join(b.TempDir(), strconv.Itoa(i)))
			}
			var g errgroup.Group
			g.SetLimit(at)
			b.ResetTimer()
			start := time.Now()
			for i, sealed := range bundles {
				g.Go(func() error { return storeTrial(b, s, sealed, i) })
			}
			if err := g.Wait(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(start).Microseconds())/1000/float64(b.N), "ms/trial")
		})
	}
}

func sealTrial(b *testing.B, dir string) bundle.Sealed {
	b.Helper()
	w, err := bundle.NewWriter(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"task.yaml", "trajectory.yaml", "metrics.yaml", "grade.yaml", "env.yaml", "logs/agent.log", "logs/grader.log", "logs/setup.log"} {
		if err := w.WriteFile(name, []byte(strings.Repeat(name+"\n", 100))); err != nil {
			b.Fatal(err)
		}
	}
	sealed, err := w.Seal(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return sealed
}

func storeTrial(b *testing.B, s bundle.Store, sealed bundle.Sealed, i int) error {
	ctx, keys := b.Context(), bundle.Keys{Run: "bench"}
	task := fmt.Sprintf("HumanEval/%d", i/5)
	trial := bundle.TrialID("store", keys.Run, task, i%5)
	c, _, err := bundle.ClaimAttempt(ctx, s, keys, bundle.Claim{TrialID: trial, TaskID: task, TrialIndex: i % 5, Epoch: 1, Nonce: bundle.NewNonce()})
	if err != nil {
		return err
	}
	if err := bundle.Upload(ctx, s, keys.AttemptFiles(task, i%5, c.Attempt), sealed, 4); err != nil {
		return err
	}
	_, won, err := bundle.WriteCommit(ctx, s, keys, bundle.Commit{TrialID: trial, TaskID: task, TrialIndex: i % 5, Epoch: 1, Attempt: c.Attempt, Nonce: c.Nonce})
	if err != nil || !won {
		return fmt.Errorf("commit: won %v, error %w", won, err)
	}
	if err := bundle.EndAttempt(ctx, s, keys, trial, bundle.AttemptEnd{Attempt: c.Attempt, Epoch: 1, Committed: true}); err != nil {
		return err
	}
	return bundle.WriteResult(ctx, s, keys, bundle.Result{TrialID: trial, TaskID: task, TrialIndex: i % 5, Epoch: 1, Attempt: c.Attempt, Attempts: 1})
}
