// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
)

var at = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// draft is a run of one task with this name and plan.
func draft(name, digest string) *producer.Draft {
	return &producer.Draft{Run: &manifest.Run{Name: name}, Plan: manifest.Plan{Digest: digest, Tasks: 1, Trials: 1, Parts: 1}}
}

// run is a run in the store.
type run struct {
	id, group, digest string
	minute            int // when it was made
	done              bool
}

func storeWith(t *testing.T, runs ...run) bundle.Store {
	t.Helper()
	s := memstore.New()
	for _, r := range runs {
		body, err := dispatch.EncodeRun(manifest.RunRecord{
			SchemaVersion: bundle.SchemaVersion, RunID: r.id, Group: r.group, CreatedAt: at.Add(time.Duration(r.minute) * time.Minute),
			Plan: manifest.Plan{Digest: r.digest, Tasks: 1, Trials: 1, Parts: 1}, Run: manifest.Run{Name: "n"},
		})
		if err != nil {
			t.Fatal(err)
		}
		keys := bundle.Keys{Run: r.id}
		if _, err := s.Create(t.Context(), keys.RunFile(), body); err != nil {
			t.Fatal(err)
		}
		if !r.done {
			continue
		}
		trial := bundle.TrialID("6f0c6c0e-54a6-4d64-a1ab-6f2c5c0f7e11", r.id, "t", 0)
		if _, err := s.Create(t.Context(), keys.Commit(trial, 1), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestNames(t *testing.T) {
	one := [][]*producer.Draft{{draft("one", "d1")}}
	matrix := [][]*producer.Draft{{draft("m", "d1"), draft("m", "d2"), draft("m", "d3")}}
	for name, c := range map[string]struct {
		runID  string
		store  []run
		fresh  bool // unfinished runs are not looked for
		drafts [][]*producer.Draft
		want   []producer.Options
	}{
		"a run":                {drafts: one, want: []producer.Options{{RunID: "one-20261129-120000"}}},
		"a run with an id":     {runID: "mine", drafts: one, want: []producer.Options{{RunID: "mine"}}},
		"a matrix with an id":  {runID: "mine", drafts: matrix, want: []producer.Options{{RunID: "mine-1", Group: "mine"}, {RunID: "mine-2", Group: "mine"}, {RunID: "mine-3", Group: "mine"}}},
		"a matrix":             {drafts: matrix, want: of("m-20261129-120000", 3)},
		"an unfinished run":    {store: []run{{id: "old", digest: "d1"}}, drafts: one, want: []producer.Options{{RunID: "old"}}},
		"a run of a group":     {store: []run{{id: "g-2", group: "g", digest: "d1"}}, drafts: one, want: []producer.Options{{RunID: "g-2", Group: "g"}}},
		"a finished run":       {store: []run{{id: "old", digest: "d1", done: true}}, drafts: one, want: []producer.Options{{RunID: "one-20261129-120000"}}},
		"another plan":         {store: []run{{id: "old", digest: "d2"}}, drafts: one, want: []producer.Options{{RunID: "one-20261129-120000"}}},
		"nobody wants the old": {store: []run{{id: "old", digest: "d1"}}, fresh: true, drafts: one, want: []producer.Options{{RunID: "one-20261129-120000"}}},
		"the newest of several": {
			store:  []run{{id: "a", digest: "d1", minute: 1}, {id: "b", digest: "d1", minute: 3}, {id: "c", digest: "d1", minute: 2}},
			drafts: one, want: []producer.Options{{RunID: "b"}},
		},
		"an unfinished matrix, half of it done": {
			store:  []run{{id: "g-1", group: "g", digest: "d1", done: true}, {id: "g-2", group: "g", digest: "d2"}, {id: "g-3", group: "g", digest: "d3"}},
			drafts: matrix, want: of("g", 3),
		},
		"a matrix that was not submitted to its end": {
			store: []run{{id: "g-1", group: "g", digest: "d1"}}, drafts: matrix, want: of("g", 3),
		},
		"a finished matrix": {
			store:  []run{{id: "g-1", group: "g", digest: "d1", done: true}, {id: "g-2", group: "g", digest: "d2", done: true}, {id: "g-3", group: "g", digest: "d3", done: true}},
			drafts: matrix, want: of("m-20261129-120000", 3),
		},
		"a matrix whose values changed places": {
			store:  []run{{id: "g-1", group: "g", digest: "d2"}, {id: "g-2", group: "g", digest: "d1"}},
			drafts: matrix, want: of("m-20261129-120000", 3),
		},
		"a matrix that was longer": {
			store:  []run{{id: "g-1", group: "g", digest: "d1"}, {id: "g-4", group: "g", digest: "d4"}},
			drafts: matrix, want: of("m-20261129-120000", 3),
		},
		"the newest of several groups": {
			store: []run{
				{id: "g-1", group: "g", digest: "d1", minute: 1},
				{id: "h-2", group: "h", digest: "d2", minute: 2},
				{id: "i-3", group: "i", digest: "d3", minute: 3, done: true},
			},
			drafts: matrix, want: of("h", 3),
		},
		"a matrix whose value nothing uses": {
			store:  []run{{id: "g-1", group: "g", digest: "d1", done: true}, {id: "g-2", group: "g", digest: "d1"}},
			drafts: [][]*producer.Draft{{draft("m", "d1"), draft("m", "d1")}}, want: of("g", 2),
		},
		"one file given twice": {
			drafts: append(one, one...), want: []producer.Options{{RunID: "one-20261129-120000"}, {RunID: "one-2-20261129-120000"}},
		},
		"one file given twice, with an unfinished run": {
			store: []run{{id: "old", digest: "d1"}}, drafts: append(one, one...),
			want: []producer.Options{{RunID: "old"}, {RunID: "one-20261129-120000"}},
		},
		"a matrix given twice": {
			drafts: append(matrix, matrix...), want: append(of("m-20261129-120000", 3), of("m-2-20261129-120000", 3)...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := Namer{RunID: c.runID, Now: at}
			if !c.fresh {
				n.Unfinished = storeWith(t, c.store...)
			}
			var got []producer.Options
			for _, drafts := range c.drafts {
				opts, err := n.File(t.Context(), drafts)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, opts...)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

// of are the members of a group.
func of(group string, count int) []producer.Options { return members(group, count) }

// However long a name is, its ids are allowed, and no two are the same.
func TestLongNames(t *testing.T) {
	long := "a-name-as-long-as-a-name-may-be-and-perhaps-a-little-longer-xyz"
	n := Namer{Now: at}
	seen := map[string]bool{}
	for range 12 {
		opts, err := n.File(t.Context(), []*producer.Draft{draft(long, "d")})
		if err != nil {
			t.Fatal(err)
		}
		if id := opts[0].RunID; len(id) > 63 || seen[id] {
			t.Errorf("id %s: %d characters, given before: %t", id, len(id), seen[id])
		}
		seen[opts[0].RunID] = true
	}
}
