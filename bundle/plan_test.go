// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/memstore"
)

func planRow(i int) bundle.PlanRow {
	task := fmt.Sprintf("task/%d <&>", i/2)
	return bundle.PlanRow{TaskID: task, TrialIndex: i % 2, TrialID: bundle.TrialID("s", "r", task, i%2), Pack: "p", Offset: int64(100 * i), Length: 100}
}

// writePlan stores a plan and returns where its rows went.
func writePlan(t *testing.T, s bundle.Store, limits bundle.PlanLimits, n int) (refs []bundle.PlanRef, bodies [][]byte, totals bundle.PlanTotals) {
	t.Helper()
	w := bundle.NewPlanWriter(limits, func(part int, body []byte, rows []bundle.PlanRow) error {
		if part != len(bodies) || len(rows) == 0 {
			t.Errorf("part %d with %d rows comes after %d parts", part, len(rows), len(bodies))
		}
		bodies = append(bodies, body)
		return s.Put(t.Context(), keys.PlanPart(part), bytes.NewReader(body), int64(len(body)))
	})
	for i := range n {
		ref, err := w.Add(planRow(i))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	totals, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return refs, bodies, totals
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name    string
		limits  bundle.PlanLimits
		n       int
		parts   int
		perPart int // 0: not the same in each
	}{
		{"empty", bundle.PlanLimits{}, 0, 0, 0},
		{"one", bundle.PlanLimits{}, 1, 1, 1},
		{"full part", bundle.PlanLimits{Rows: 10}, 10, 1, 10},
		{"one more", bundle.PlanLimits{Rows: 10}, 11, 2, 10},
		{"by bytes", bundle.PlanLimits{Bytes: 1000}, 50, 7, 0},
		{"default", bundle.PlanLimits{}, 5_001, 2, 5_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memstore.New()
			refs, bodies, totals := writePlan(t, s, c.limits, c.n)
			if totals.Rows != c.n || totals.Parts != len(bodies) || totals.Parts != c.parts {
				t.Errorf("totals %+v, %d bodies; want %d rows in %d parts", totals, len(bodies), c.n, c.parts)
			}
			parts := make([][]bundle.PlanRow, len(bodies))
			for i := range parts {
				rows, err := bundle.ReadPlanPart(t.Context(), s, keys, i)
				if err != nil {
					t.Fatal(err)
				}
				parts[i] = rows
			}
			for i, ref := range refs {
				if c.perPart > 0 && (ref.Part != i/c.perPart || ref.Row != i%c.perPart) {
					t.Errorf("row %d went to %+v", i, ref)
				}
				if got := parts[ref.Part][ref.Row]; got != planRow(i) {
					t.Fatalf("row %d is %+v, want %+v", i, got, planRow(i))
				}
			}
			_, again, _ := writePlan(t, memstore.New(), c.limits, c.n)
			if diff := cmp.Diff(bodies, again); diff != "" {
				t.Error("the same rows gave other bytes")
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	w := bundle.NewPlanWriter(bundle.PlanLimits{Bytes: 500}, func(int, []byte, []bundle.PlanRow) error { return nil })
	for name, spoil := range map[string]func(*bundle.PlanRow){
		"no task":        func(r *bundle.PlanRow) { r.TaskID = "" },
		"negative index": func(r *bundle.PlanRow) { r.TrialIndex = -1 },
		"no trial id":    func(r *bundle.PlanRow) { r.TrialID = "" },
		"upper case":     func(r *bundle.PlanRow) { r.TrialID = strings.ToUpper(strings.Repeat("ab", 16)) },
		"offset":         func(r *bundle.PlanRow) { r.Offset = -1 },
		"too long":       func(r *bundle.PlanRow) { r.Dir = strings.Repeat("d", 500) },
	} {
		row := planRow(1)
		spoil(&row)
		if _, err := w.Add(row); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if totals, err := w.Finish(); totals != (bundle.PlanTotals{}) || err != nil {
		t.Errorf("totals %+v, error %v; want nothing", totals, err)
	}
}

func TestPlanFlushFails(t *testing.T) {
	full := errors.New("full")
	w := bundle.NewPlanWriter(bundle.PlanLimits{Rows: 1}, func(int, []byte, []bundle.PlanRow) error { return full })
	if _, err := w.Add(planRow(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(planRow(1)); !errors.Is(err, full) {
		t.Errorf("add: error %v, want %v", err, full)
	}
}

func TestReadPlanPartRefuses(t *testing.T) {
	zip := func(text string) []byte {
		w, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		return w.EncodeAll([]byte(text), nil)
	}
	good := zip(`{"task_id":"t","trial_id":"` + trial + `","later":1}` + "\n")
	if rows, err := bundle.DecodePlanPart(good); err != nil || len(rows) != 1 {
		t.Fatalf("rows %v, error %v", rows, err)
	}
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"not zstd":     {[]byte("hello"), "not a plan part"},
		"nothing":      {nil, "not a plan part"},
		"cut":          {good[:len(good)-3], "not a plan part"},
		"changed":      {append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1), "not a plan part"},
		"a bomb":       {zip(strings.Repeat(" ", 64<<20)), "not a plan part"},
		"no rows":      {zip(""), "one or more lines"},
		"unended line": {zip(`{"task_id":"t"}`), "each ended"},
		"empty line":   {zip("\n"), "row 0"},
		"bad row":      {zip(`{"task_id":"t","trial_id":"` + trial + `"}` + "\n{}\n"), "row 1"},
		"many rows":    {zip(strings.Repeat(`{"task_id":"t","trial_id":"`+trial+`"}`+"\n", 100_001)), "more than 100000 rows"},
	} {
		s := memstore.New()
		if err := s.Put(t.Context(), keys.PlanPart(3), bytes.NewReader(c.body), -1); err != nil {
			t.Fatal(err)
		}
		_, err := bundle.ReadPlanPart(t.Context(), s, keys, 3)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), keys.PlanPart(3)) {
			t.Errorf("%s: error %v, want one with %q and the key", name, err, c.want)
		}
	}
	if _, err := bundle.ReadPlanPart(t.Context(), memstore.New(), keys, 3); !errors.Is(err, bundle.ErrNotFound) {
		t.Errorf("no part: error %v, want %v", err, bundle.ErrNotFound)
	}
}

func FuzzDecodePlanPart(f *testing.F) {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	defer w.Close()
	f.Add(w.EncodeAll([]byte(`{"task_id":"t","trial_index":1,"trial_id":"`+trial+`","pack":"p"}`+"\n"), nil))
	f.Add(w.EncodeAll([]byte("\n"), nil))
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, body []byte) {
		rows, err := bundle.DecodePlanPart(body)
		if err == nil && len(rows) == 0 {
			t.Error("no rows and no error")
		}
		for _, r := range rows { // what was read must be fit for keys
			if err := bundle.CheckKey(keys.Commit(r.TrialID, 1)); err != nil {
				t.Error(err)
			}
		}
	})
}
