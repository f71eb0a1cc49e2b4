// SPDX-License-Identifier: Apache-2.0

package aggregator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemill/tidemill/bundle"
)

// endless is a store that makes plan and commits when they are asked for and keeps
// nothing, so that what memory there is in use is the aggregator's.
type endless struct {
	bundle.Store // answers nothing: what isn't made here must not be called
	t            testing.TB
	parts        int
	peak         atomic.Uint64
	calls        atomic.Int64
}

const (
	endlessRows    = 500 // of a part
	endlessRepeats = 5
)

func (e *endless) rows(part int) []bundle.PlanRow {
	var rows []bundle.PlanRow
	for i := range endlessRows {
		n := part*endlessRows + i
		rows = append(rows, bundle.PlanRow{
			TaskID: fmt.Sprintf("task/%d", n/endlessRepeats), TrialIndex: n % endlessRepeats,
			TrialID: fmt.Sprintf("%032x", n), Pack: "ab",
		})
	}
	return rows
}

func (e *endless) Get(_ context.Context, key string) (io.ReadCloser, bundle.Info, error) {
	if e.calls.Add(1)%2_500 == 0 {
		e.measure()
	}
	var body []byte
	keys := bundle.Keys{Run: "demo"}
	var part int
	if key == keys.RunFile() {
		total := bundle.PlanTotals{Parts: e.parts, Rows: e.parts * endlessRows}
		body = runFile(e.t, total.Rows/endlessRepeats, endlessRepeats, total)
	} else if _, err := fmt.Sscanf(key, keys.Prefix()+"plan/%d.jsonl.zst", &part); err == nil {
		w := bundle.NewPlanWriter(bundle.PlanLimits{}, func(_ int, b []byte, _ []bundle.PlanRow) error { body = b; return nil })
		for _, row := range e.rows(part) {
			if _, err := w.Add(row); err != nil {
				return nil, bundle.Info{}, err
			}
		}
		if _, err := w.Finish(); err != nil {
			return nil, bundle.Info{}, err
		}
	} else if trial, epoch, ok := bundle.ParseCommitKey(key); ok {
		var n int
		if _, err := fmt.Sscanf(trial, "%x", &n); err != nil {
			return nil, bundle.Info{}, err
		}
		if n%50 == 0 {
			return nil, bundle.Info{}, bundle.ErrNotFound
		}
		row := bundle.PlanRow{TaskID: fmt.Sprintf("task/%d", n/endlessRepeats), TrialIndex: n % endlessRepeats, TrialID: trial}
		var err error
		if body, err = bundle.EncodeRecord(commitOf(row, n, epoch)); err != nil {
			return nil, bundle.Info{}, err
		}
	} else {
		return nil, bundle.Info{}, bundle.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(body)), bundle.Info{Key: key, Size: int64(len(body))}, nil
}

func (e *endless) measure() {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	e.peak.Store(max(e.peak.Load(), m.HeapAlloc))
}

func (e *endless) List(context.Context, string) iter.Seq2[bundle.Info, error] {
	return func(func(bundle.Info, error) bool) {}
}

func (e *endless) Put(_ context.Context, key string, r io.Reader, size int64) error {
	n, err := io.Copy(io.Discard, r)
	if err == nil && n != size {
		return fmt.Errorf("%s: %d bytes, want %d", key, n, size)
	}
	return err
}

func (e *endless) Delete(context.Context, string) error { return nil }

func TestMemoryDoesNotGrowWithRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 30,000 trials")
	}
	peak := func(parts int) uint64 {
		e := &endless{t: t, parts: parts}
		agg, err := Run(t.Context(), Config{Store: e, RunID: "demo", TempDir: t.TempDir(), Parallel: 4})
		if err != nil {
			t.Fatal(err)
		}
		want := int64(parts * endlessRows)
		if agg.TotalTrials != want || agg.Missing.Count != want/50 || !strings.HasPrefix(agg.Tasks[0].TaskID, "task/") {
			t.Fatalf("%d trials, %d missing", agg.TotalTrials, agg.Missing.Count)
		}
		return e.peak.Load()
	}
	small := peak(10) // 5,000 trials
	large := peak(50) // 25,000 trials
	if large > small+4<<20 {
		t.Errorf("heap peaks at %d bytes for 25,000 trials, at %d for 5,000", large, small)
	}
}
