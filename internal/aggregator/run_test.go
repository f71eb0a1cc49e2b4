// SPDX-License-Identifier: Apache-2.0

package aggregator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/report"
)

func TestCompleteRun(t *testing.T) {
	r := memRun(t, 8, 4)
	r.commitAll(t)
	agg := r.aggregate(t)
	if !agg.Complete || agg.TotalTasks != 8 || agg.TotalTrials != 32 || agg.Committed != 32 || agg.Missing.Count != 0 {
		t.Errorf("complete %v, %d tasks, %d trials, %d committed, %d missing", agg.Complete, agg.TotalTasks, agg.TotalTrials, agg.Committed, agg.Missing.Count)
	}
	if agg.Unscored != 2 || agg.CapturedServiceLogs.Captures != 2 || agg.CapturedServiceLogs.TotalBytes != 10+21 {
		t.Errorf("unscored %d, captures %+v", agg.Unscored, agg.CapturedServiceLogs)
	}
	if agg.Name != "demo" || agg.Agent != "oracle" || agg.Group != "g" || agg.PlanDigest != "d" || agg.Repeats != 4 || agg.GeneratedBy != "tidemill 0.1" {
		t.Errorf("header of %+v", agg)
	}
	if diff := cmp.Diff(map[string]string{"MODEL": "small", "SIZE": "1"}, agg.Matrix); diff != "" {
		t.Errorf("matrix (-want +got):\n%s", diff)
	}
	files := r.reports(t)
	back, err := report.Decode([]byte(files[report.AggregateFile]))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(agg, back); diff != "" {
		t.Errorf("what was written is not what was returned:\n%s", diff)
	}
	if len(files) != 4 {
		t.Errorf("%d reports, want 4 and no sidecar", len(files))
	}
}

// However the plan is cut, in which order commits came and how many are read at once:
// the same commits give the same bytes.
func TestSameCommitsSameBytes(t *testing.T) {
	const tasks, repeats = 7, 5
	first := newRun(t, memstore.New(), tasks, repeats, 100)
	first.commitAll(t)
	first.aggregate(t)
	want := first.reports(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := newRun(t, memstore.New(), tasks, repeats, rapid.IntRange(1, tasks*repeats).Draw(rt, "rows of a part"))
		order := make([]int, len(r.rows))
		for i := range order {
			order[i] = i
		}
		for _, n := range rapid.Permutation(order).Draw(rt, "order") {
			r.commit(t, n, 1)
			if n == 0 && rapid.Bool().Draw(rt, "early look") {
				r.aggregate(t) // an earlier report leaves no trace
			}
		}
		c := r.config(t)
		c.Parallel = rapid.IntRange(1, 40).Draw(rt, "parallel")
		if _, err := Run(t.Context(), c); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, r.reports(t)); diff != "" {
			rt.Fatalf("reports differ:\n%s", diff)
		}
	})
}

func TestRunInProgress(t *testing.T) {
	r := memRun(t, 2, 2)
	r.commit(t, 1, 1)
	agg := r.aggregate(t)
	if agg.Complete || agg.Missing.Count != 3 || agg.Missing.Unreadable != 0 || agg.Missing.Trials[0].TrialID != r.rows[0].TrialID {
		t.Errorf("complete %v, missing %+v", agg.Complete, agg.Missing)
	}
}

func TestFormerSidecarsGo(t *testing.T) {
	r := memRun(t, report.MaxListed+1, 1)
	if agg := r.aggregate(t); agg.Missing.Sidecar == nil {
		t.Fatal("no sidecar")
	}
	if r.reports(t)[report.MissingSidecar] == "" {
		t.Fatalf("%s was not written", report.MissingSidecar)
	}
	r.commitAll(t)
	r.aggregate(t)
	if _, there := r.reports(t)[report.MissingSidecar]; there {
		t.Errorf("%s is still there", report.MissingSidecar)
	}
}

func TestUnknownRun(t *testing.T) {
	r := memRun(t, 1, 1)
	for _, id := range []string{"dema", "", "../x", "a/b", ".", strings.Repeat("x", 2000)} {
		c := r.config(t)
		c.RunID = id
		_, err := Run(t.Context(), c)
		var unknown *dispatch.UnknownRunError
		if !errors.As(err, &unknown) || !cmp.Equal(unknown.Known, []string{"demo"}) || !strings.Contains(err.Error(), "demo") {
			t.Errorf("run %.20q: %v, want an UnknownRunError that names demo", id, err)
		}
	}
	_, err := Run(t.Context(), Config{Store: memstore.New(), RunID: "demo"})
	if err == nil || !strings.Contains(err.Error(), "no runs at all") {
		t.Errorf("empty store: %v", err)
	}
}

func TestBadRunFile(t *testing.T) {
	for body, want := range map[string]string{
		"schema_version: 2\nrun_id: demo\n":  "newer",
		"[":                                  "run.yaml",
		"schema_version: 1\nrun_id: other\n": "other",
		"schema_version: 1\nrun_id: demo\nplan: {parts: -1}\n":   "-1",
		"schema_version: 1\nrun_id: demo\nplan: {trials: 5}\n":   "says 5",
		"schema_version: 1\nrun_id: demo\nplan: {parts: 2}\n":    "plan part 1",
		"schema_version: 1\nrun_id: demo\nplan: {parts: many}\n": "many",
	} {
		r := memRun(t, 1, 1)
		r.put(t, r.keys.RunFile(), []byte(body))
		if _, err := Run(t.Context(), r.config(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", body, err, want)
		}
		if files := r.reports(t); len(files) != 0 {
			t.Errorf("%q: %d reports were written", body, len(files))
		}
	}
}

// A commit that can't be read is told, counts as missing, and doesn't hide the others.
func TestUnreadableCommits(t *testing.T) {
	for name, body := range map[string]string{
		"newer":      `{"schema_version": 9}`,
		"not JSON":   `{"schema_version": 1,`,
		"empty":      ``,
		"no record":  `{}`,
		"list":       `[]`,
		"wrong type": `{"schema_version": 1, "trial_id": 5}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := memRun(t, 2, 2)
			r.commitAll(t)
			r.put(t, r.keys.Commit(r.rows[1].TrialID, 1), []byte(body))
			var log bytes.Buffer
			c := r.config(t)
			c.Log = zerolog.New(&log)
			agg, err := Run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if agg.Complete || agg.Committed != 3 || agg.Missing.Count != 1 || agg.Missing.Unreadable != 1 || agg.Missing.Trials[0].Problem == "" {
				t.Errorf("complete %v, committed %d, missing %+v", agg.Complete, agg.Committed, agg.Missing)
			}
			if !strings.Contains(log.String(), r.rows[1].TrialID) {
				t.Errorf("log does not name the trial: %s", log.String())
			}
		})
	}
	// The commit of another trial under this one's key.
	r := memRun(t, 2, 1)
	alien := commitOf(r.rows[1], 1, 1)
	alien.TrialID = r.rows[0].TrialID
	if err := bundle.PutRecord(t.Context(), r.store, r.keys.Commit(alien.TrialID, 1), alien); err != nil {
		t.Fatal(err)
	}
	if agg := r.aggregate(t); agg.Missing.Unreadable != 1 || agg.Committed != 0 {
		t.Errorf("an alien commit counts: %+v", agg.Missing)
	}
}

func TestEpochs(t *testing.T) {
	r := memRun(t, 1, 3)
	r.commitAll(t)
	id := func(n int) string { return r.rows[n].TrialID }
	r.control(t, 1, "pause", nil)
	r.control(t, 2, "retry", map[string]any{"epochs": map[string]any{id(0): 2, id(1): 2}})
	r.control(t, 3, "regrade", map[string]any{"epochs": map[string]any{id(0): 3}})
	r.commit(t, 0, 2)
	agg := r.aggregate(t)
	want := report.Epochs{Newest: 3, Reopened: 2, Open: 2, RegradedBy: map[string]int64{}}
	if agg.Complete || !cmp.Equal(agg.Epochs, want) || agg.Missing.Count != 0 || agg.Attempts.Total != 4 {
		t.Errorf("complete %v, epochs %+v, missing %d, attempts %+v", agg.Complete, agg.Epochs, agg.Missing.Count, agg.Attempts)
	}
	regraded := commitOf(r.rows[0], 3, 3)
	regraded.Regraded = &bundle.Regraded{Epoch: 2, Attempt: 2, Pack: "p"}
	if err := bundle.PutRecord(t.Context(), r.store, r.keys.Commit(id(0), 3), regraded); err != nil {
		t.Fatal(err)
	}
	r.commit(t, 1, 2)
	agg = r.aggregate(t)
	if agg.Epochs.Regraded != 1 || agg.Epochs.RegradedBy["p"] != 1 {
		t.Errorf("epochs %+v, want one regraded by pack p", agg.Epochs)
	}
	if !agg.Complete || agg.Epochs.Open != 0 || agg.TotalTrials != 3 || agg.Committed != 3 {
		t.Errorf("complete %v, epochs %+v, %d of %d", agg.Complete, agg.Epochs, agg.Committed, agg.TotalTrials)
	}
}

func TestEnded(t *testing.T) {
	r := memRun(t, 1, 1)
	r.control(t, 1, "cancel", map[string]any{"reason": "wrong model"})
	if e := r.aggregate(t).Ended; e == nil || e.Kind != "cancel" || e.Reason != "wrong model" || e.Rev != 1 || e.By != "me" {
		t.Errorf("ended = %+v", e)
	}
	r.control(t, 2, "resume", nil)
	if e := r.aggregate(t).Ended; e != nil {
		t.Errorf("ended = %+v after a resume", e)
	}
	r.control(t, 3, "of_tomorrow", nil)
	r.control(t, 4, "stop", nil)
	if e := r.aggregate(t).Ended; e == nil || e.Kind != "stop" {
		t.Errorf("ended = %+v", e)
	}
}

func TestBadControl(t *testing.T) {
	for _, epochs := range []any{nil, "x", map[string]any{"a": "2"}, map[string]any{"a": 1}, map[string]any{"a": 2.5}, map[string]any{"a": 1e300}} {
		r := memRun(t, 1, 1)
		r.control(t, 1, "retry", map[string]any{"epochs": epochs})
		if _, err := Run(t.Context(), r.config(t)); err == nil || !strings.Contains(err.Error(), "control record 1") {
			t.Errorf("epochs %v: %v, want an error that names the record", epochs, err)
		}
	}
	r := memRun(t, 1, 1)
	r.put(t, r.keys.ControlRecord(1), []byte(`{"schema_version": 7}`))
	var newer *bundle.VersionError
	if _, err := Run(t.Context(), r.config(t)); !errors.As(err, &newer) {
		t.Errorf("newer control record: %v", err)
	}
}

// faulty is a store that fails at some keys.
type faulty struct {
	bundle.Store
	fails func(op, key string) error
}

func (f faulty) Get(ctx context.Context, key string) (io.ReadCloser, bundle.Info, error) {
	if err := f.fails("get", key); err != nil {
		return nil, bundle.Info{}, err
	}
	return f.Store.Get(ctx, key)
}

func (f faulty) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := f.fails("put", key); err != nil {
		return err
	}
	return f.Store.Put(ctx, key, r, size)
}

// A store without an answer is no missing trial.
func TestSilentStoreIsAnError(t *testing.T) {
	for _, fault := range []error{bundle.ErrUnavailable, bundle.ErrDenied, io.ErrUnexpectedEOF, context.DeadlineExceeded} {
		r := memRun(t, 3, 3)
		r.commitAll(t)
		c := r.config(t)
		c.Store = faulty{r.store, func(op, key string) error {
			if op == "get" && key == r.keys.Commit(r.rows[4].TrialID, 1) {
				return fmt.Errorf("get %s: %w", key, fault)
			}
			return nil
		}}
		if _, err := Run(t.Context(), c); !errors.Is(err, fault) {
			t.Errorf("error = %v, want %v", err, fault)
		}
		if files := r.reports(t); len(files) != 0 {
			t.Errorf("%d reports were written", len(files))
		}
		if left, err := os.ReadDir(c.TempDir); err != nil || len(left) != 0 {
			t.Errorf("left in the temporary directory: %v, %v", left, err)
		}
	}
}

func TestFullStore(t *testing.T) {
	r := memRun(t, 1, 1)
	c := r.config(t)
	c.Store = faulty{r.store, func(op, key string) error {
		if op == "put" && strings.HasSuffix(key, report.SlicesFile) {
			return bundle.ErrNoSpace
		}
		return nil
	}}
	_, err := Run(t.Context(), c)
	if !errors.Is(err, bundle.ErrNoSpace) || !strings.Contains(err.Error(), report.SlicesFile) {
		t.Errorf("error = %v", err)
	}
	if _, there := r.reports(t)[report.AggregateFile]; there {
		t.Error("aggregate.json was written without what it points at")
	}
}

func TestCancelled(t *testing.T) {
	r := memRun(t, 3, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, r.config(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}
