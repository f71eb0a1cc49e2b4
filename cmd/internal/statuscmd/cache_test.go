// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/manifest"
)

// reads counts how many commits are read.
type reads struct {
	bundle.Store
	n atomic.Int64
}

func (r *reads) Get(ctx context.Context, key string) (io.ReadCloser, bundle.Info, error) {
	if strings.Contains(key, "/commits/") {
		r.n.Add(1)
	}
	return r.Store.Get(ctx, key)
}

// committed is a local store with a run of so many commits. They are written as files, for
// a store would wait for the disk with each.
func committed(tb testing.TB, n int) (*reads, manifest.RunRecord) {
	tb.Helper()
	tb.Setenv("XDG_CACHE_HOME", tb.TempDir())
	tb.Setenv("HOME", tb.TempDir()) // where the cache is on other systems
	dir := tb.TempDir()
	s, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	if _, err := bundle.OpenIdentity(tb.Context(), s); err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		writeCommit(tb, dir, i, 1)
	}
	rec := manifest.RunRecord{RunID: "r", CreatedAt: time.Now().Add(-time.Hour), Plan: manifest.Plan{Tasks: n, Trials: n}}
	return &reads{Store: s}, rec
}

func trialNo(i int) string { return fmt.Sprintf("%02x%030x", i%256, i) }

func writeCommit(tb testing.TB, dir string, i, epoch int) {
	tb.Helper()
	usd := 0.5
	c := bundle.Commit{SchemaVersion: bundle.SchemaVersion, TrialID: trialNo(i), TaskID: fmt.Sprint("task-", i), Epoch: epoch, Attempt: epoch, At: time.Now().UTC()}
	c.Outcome.TerminationReason, c.Outcome.Scored, c.Grade.BinaryPass, c.Metrics.CostUSD = "agent_done", i%3 != 0, i%2 == 0, &usd
	body, err := json.Marshal(c)
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(dir, filepath.FromSlash(bundle.Keys{Run: "r"}.Commit(c.TrialID, epoch)))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		tb.Fatal(err)
	}
}

// seen looks as another process would, and wants so many commits to be read.
func seen(t *testing.T, s *reads, rec manifest.RunRecord, want int) *Description {
	t.Helper()
	s.n.Store(0)
	d, err := newCounter(s, rec).look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := int(s.n.Load()); got != want {
		t.Errorf("%d commits were read, want %d", got, want)
	}
	d.PerMinute = 0 // time goes by
	return d
}

func told(t *testing.T, d *Description) string {
	t.Helper()
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What was read once is not read again, says the same, and counts only while the store has
// it.
func TestCommitsAreReadOnce(t *testing.T) {
	s, rec := committed(t, cacheFrom)
	dir := strings.TrimPrefix(s.URL(), "file://")
	first := seen(t, s, rec, cacheFrom)
	if first.Done != cacheFrom || first.CostUSD != cacheFrom/2 || first.Passed == 0 || first.Failed == 0 || first.Unscored == 0 {
		t.Errorf("%+v", first)
	}
	if diff := cmp.Diff(told(t, first), told(t, seen(t, s, rec, 0))); diff != "" {
		t.Errorf("from what was written down (-read +written down):\n%s", diff)
	}
	writeCommit(t, dir, cacheFrom, 1)
	writeCommit(t, dir, 1, 2)
	if d := seen(t, s, rec, 2); d.Done+d.Reopened != cacheFrom+1 || d.CostUSD != cacheFrom/2+1 {
		t.Errorf("with two more: %+v", d)
	}
	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(bundle.Keys{Run: "r"}.Commit(trialNo(2), 1)))); err != nil {
		t.Fatal(err)
	}
	if d := seen(t, s, rec, 2); d.Done+d.Reopened != cacheFrom {
		t.Errorf("with one that is gone: %+v", d)
	}
	again := rec
	again.CreatedAt = again.CreatedAt.Add(time.Second)
	seen(t, s, again, cacheFrom+1) // another run under the same id
}

// A file that is torn, or isn't ours, costs reads and nothing else.
func TestATornCacheIsRead(t *testing.T) {
	s, rec := committed(t, 2*cacheFrom)
	first := seen(t, s, rec, 2*cacheFrom)
	path := openCache(t.Context(), s, rec).path
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)*3/4-10], 0o600); err != nil {
		t.Fatal(err)
	}
	s.n.Store(0)
	d, err := newCounter(s, rec).look(t.Context())
	if n := int(s.n.Load()); err != nil || d.Passed != first.Passed || n < cacheFrom/2 || n > cacheFrom/2+2 {
		t.Errorf("%d were read, %d passed, %v; want about %d and %d", n, d.Passed, err, cacheFrom/2, first.Passed)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("not ours\n", 100)+"\x00\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen(t, s, rec, 2*cacheFrom)
	seen(t, s, rec, 1) // the first line behind the garbage is lost
}

// BenchmarkLook is status of a run of 20,000 trials: first, and once more by the same user.
func BenchmarkLook(b *testing.B) {
	s, rec := committed(b, 20_000)
	for _, name := range []string{"first", "again"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if name == "first" {
					b.StopTimer()
					b.Setenv("XDG_CACHE_HOME", b.TempDir())
					b.StartTimer()
				}
				if d, err := newCounter(s, rec).look(b.Context()); err != nil || d.Done != 20_000 {
					b.Fatal(d, err)
				}
			}
		})
	}
}
