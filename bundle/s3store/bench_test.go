// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
)

// BenchmarkTrial is what an ordinary trial costs a store: claim, a bundle of eight files
// and the index, commit, end and result, which are 13 objects.
func BenchmarkTrial(b *testing.B) {
	l := newLab(b)
	w, err := bundle.NewWriter(b.TempDir(), nil)
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
	var n atomic.Int64
	for _, at := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("trials-at-once=%d", at), func(b *testing.B) {
			s := opened(b, l.direct())
			var g errgroup.Group
			g.SetLimit(at)
			for b.Loop() {
				g.Go(func() error { return storeTrial(b, s, sealed, int(n.Add(1))) })
			}
			if err := g.Wait(); err != nil {
				b.Fatal(err)
			}
		})
	}
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

// BenchmarkListCommits lists the commits of a run of 10,000 trials: ten requests.
func BenchmarkListCommits(b *testing.B) {
	l := newLab(b)
	s := opened(b, l.direct())
	keys := bundle.Keys{Run: "bench"}
	const commits = 10_000
	var g errgroup.Group
	g.SetLimit(16)
	for i := range commits {
		g.Go(func() error {
			_, err := s.Create(b.Context(), keys.Commit(bundle.TrialID("store", keys.Run, "task", i), 1), []byte("{}"))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		n := 0
		for _, err := range s.List(b.Context(), keys.Commits()) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != commits {
			b.Fatalf("%d commits, want %d", n, commits)
		}
	}
}

// BenchmarkPut is the rate at which large files go up.
func BenchmarkPut(b *testing.B) {
	l := newLab(b)
	s := opened(b, l.direct())
	body := string(noise(64 * mib))
	b.SetBytes(64 * mib)
	for b.Loop() {
		if err := s.Put(b.Context(), "k", strings.NewReader(body), int64(len(body))); err != nil {
			b.Fatal(err)
		}
	}
}
