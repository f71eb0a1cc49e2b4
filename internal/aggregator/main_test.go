// SPDX-License-Identifier: Apache-2.0

package aggregator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gopkg.in/yaml.v3"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/report"
	"github.com/tidemill/tidemill/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// testRun is a run in a store, made without the code that runs trials.
type testRun struct {
	store bundle.Store
	keys  bundle.Keys
	rows  []bundle.PlanRow
}

func plan(tasks, repeats int) []bundle.PlanRow {
	var rows []bundle.PlanRow
	for task := range tasks {
		for i := range repeats {
			id := fmt.Sprintf("task/%d", task)
			rows = append(rows, bundle.PlanRow{TaskID: id, TrialIndex: i, TrialID: bundle.TrialID("s", "demo", id, i), Pack: "ab"})
		}
	}
	return rows
}

// newRun writes run.yaml and a plan in parts of so many rows.
func newRun(t testing.TB, store bundle.Store, tasks, repeats, partRows int) *testRun {
	t.Helper()
	r := &testRun{store: store, keys: bundle.Keys{Run: "demo"}, rows: plan(tasks, repeats)}
	w := bundle.NewPlanWriter(bundle.PlanLimits{Rows: partRows}, func(part int, body []byte, _ []bundle.PlanRow) error {
		return store.Put(t.Context(), r.keys.PlanPart(part), bytes.NewReader(body), int64(len(body)))
	})
	for _, row := range r.rows {
		if _, err := w.Add(row); err != nil {
			t.Fatal(err)
		}
	}
	totals, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	r.put(t, r.keys.RunFile(), runFile(t, tasks, repeats, totals))
	return r
}

func runFile(t testing.TB, tasks, repeats int, totals bundle.PlanTotals) []byte {
	t.Helper()
	body, err := yaml.Marshal(manifest.RunRecord{
		SchemaVersion: 1, RunID: "demo", Group: "g", CreatedAt: start, Producer: "tidemill 0.1",
		Plan: manifest.Plan{Digest: "d", Tasks: tasks, Trials: totals.Rows, Parts: totals.Parts},
		Run: manifest.Run{
			Version: 1, Name: "demo", Repeats: repeats, Agent: manifest.Agent{Name: "oracle"},
			Matrix: map[string][]string{"MODEL": {"small"}, "SIZE": {"1"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func (r *testRun) put(t testing.TB, key string, body []byte) {
	t.Helper()
	if err := r.store.Put(t.Context(), key, bytes.NewReader(body), int64(len(body))); err != nil {
		t.Fatal(err)
	}
}

func commitOf(row bundle.PlanRow, n, epoch int) bundle.Commit {
	score := float64(n%3) / 2
	cost := float64(n) / 997
	c := bundle.Commit{
		SchemaVersion: 1, TrialID: row.TrialID, TaskID: row.TaskID, TrialIndex: row.TrialIndex,
		Epoch: epoch, Attempt: epoch, Nonce: "n", At: start.Add(time.Duration(n) * time.Second),
		Outcome: bundle.Outcome{Status: bundle.Completed, TerminationReason: bundle.ReasonAgentDone, FailureClass: bundle.NoFailure, Scored: true},
		Grade:   bundle.Grade{Scored: true, BinaryPass: score >= 1, Score: &score, PassThreshold: 1},
		Metrics: bundle.Metrics{SchemaVersion: 1, LatencyTotalS: bundle.NewSeconds(time.Duration(n*7%1000) * time.Millisecond), CostUSD: &cost},
	}
	if n%11 == 10 {
		c.Outcome = bundle.Outcome{Status: bundle.Errored, TerminationReason: bundle.ReasonProvisionError, FailureClass: bundle.InfraFailure}
		c.Grade = bundle.Grade{}
		c.Metrics.CapturedServiceLogs = map[string]int64{"db": int64(n)}
	}
	return c
}

func (r *testRun) commit(t testing.TB, n, epoch int) {
	t.Helper()
	if _, _, err := bundle.WriteCommit(t.Context(), r.store, r.keys, commitOf(r.rows[n], n, epoch)); err != nil {
		t.Fatal(err)
	}
}

func (r *testRun) commitAll(t testing.TB) {
	t.Helper()
	for n := range r.rows {
		r.commit(t, n, 1)
	}
}

func (r *testRun) control(t testing.TB, rev int, kind string, args map[string]any) {
	t.Helper()
	c := bundle.Control{SchemaVersion: 1, Rev: rev, Kind: kind, At: start, By: "me", Args: args}
	if err := bundle.CreateRecord(t.Context(), r.store, r.keys.ControlRecord(rev), c); err != nil {
		t.Fatal(err)
	}
}

func (r *testRun) config(t testing.TB) Config {
	return Config{Store: r.store, RunID: "demo", TempDir: t.TempDir()}
}

func (r *testRun) aggregate(t testing.TB) *report.Aggregate {
	t.Helper()
	agg, err := Run(t.Context(), r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return agg
}

// reports is what was written of the run.
func (r *testRun) reports(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range append([]string{report.AggregateFile, report.PerTaskFile, report.SlicesFile, report.FailuresFile}, report.Sidecars...) {
		body, err := get(t.Context(), r.store, r.keys.Report(name))
		if err == nil {
			out[name] = body
		}
	}
	return out
}

func get(ctx context.Context, s bundle.Store, key string) (string, error) {
	r, _, err := s.Get(ctx, key)
	if err != nil {
		return "", err
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	return string(body), err
}

func memRun(t testing.TB, tasks, repeats int) *testRun {
	return newRun(t, memstore.New(), tasks, repeats, 100)
}
