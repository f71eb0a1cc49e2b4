// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"errors"
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
		"a run":                {drafts: one, want: anew("one-20261129-120000")},
		"a run with an id":     {runID: "mine", drafts: one, want: []producer.Options{{RunID: "mine"}}},
		"a matrix with an id":  {runID: "mine", drafts: matrix, want: []producer.Options{{RunID: "mine-1", Group: "mine"}, {RunID: "mine-2", Group: "mine"}, {RunID: "mine-3", Group: "mine"}}},
		"a matrix":             {drafts: matrix, want: groupAnew("m-20261129-120000", 3)},
		"an unfinished run":    {store: []run{{id: "old", digest: "d1"}}, drafts: one, want: []producer.Options{{RunID: "old"}}},
		"a run of a group":     {store: []run{{id: "g-2", group: "g", digest: "d1"}}, drafts: one, want: []producer.Options{{RunID: "g-2", Group: "g"}}},
		"a finished run":       {store: []run{{id: "old", digest: "d1", done: true}}, drafts: one, want: anew("one-20261129-120000")},
		"another plan":         {store: []run{{id: "old", digest: "d2"}}, drafts: one, want: anew("one-20261129-120000")},
		"nobody wants the old": {store: []run{{id: "old", digest: "d1"}}, fresh: true, drafts: one, want: anew("one-20261129-120000")},
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
			drafts: matrix, want: groupAnew("m-20261129-120000", 3),
		},
		"a matrix whose values changed places": {
			store:  []run{{id: "g-1", group: "g", digest: "d2"}, {id: "g-2", group: "g", digest: "d1"}},
			drafts: matrix, want: groupAnew("m-20261129-120000", 3),
		},
		"a matrix that was longer": {
			store:  []run{{id: "g-1", group: "g", digest: "d1"}, {id: "g-4", group: "g", digest: "d4"}},
			drafts: matrix, want: groupAnew("m-20261129-120000", 3),
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
			drafts: append(one, one...), want: anew("one-20261129-120000", "one-20261129-120000-2"),
		},
		"one file given twice, with an unfinished run": {
			store: []run{{id: "old", digest: "d1"}}, drafts: append(one, one...),
			want: append([]producer.Options{{RunID: "old"}}, anew("one-20261129-120000")...),
		},
		"a name that another command took in this second": {
			store: []run{{id: "one-20261129-120000", digest: "d1"}}, fresh: true, drafts: one, want: anew("one-20261129-120000-2"),
		},
		"the same with another plan": {
			store: []run{{id: "one-20261129-120000", digest: "d9"}, {id: "one-20261129-120000-2", digest: "d9"}}, drafts: one,
			want: anew("one-20261129-120000-3"),
		},
		"the same, finished": {
			store: []run{{id: "one-20261129-120000", digest: "d1", done: true}}, drafts: one, want: anew("one-20261129-120000-2"),
		},
		"a name that a group has": {
			store:  []run{{id: "one-20261129-120000-1", group: "one-20261129-120000", digest: "d9"}, {id: "one-20261129-120000-2", group: "one-20261129-120000", digest: "d9"}},
			drafts: one, want: anew("one-20261129-120000-3"),
		},
		"a group that another command made in this second": {
			store: []run{{id: "m-20261129-120000-1", group: "m-20261129-120000", digest: "d1"}}, fresh: true, drafts: matrix,
			want: groupAnew("m-20261129-120000-2", 3),
		},
		"a group with the name of a run": {
			store: []run{{id: "m-20261129-120000", digest: "d1"}}, drafts: matrix, want: groupAnew("m-20261129-120000-2", 3),
		},
		"a chosen id that exists": {
			runID: "mine", store: []run{{id: "mine", digest: "d9", done: true}}, drafts: one, want: []producer.Options{{RunID: "mine"}},
		},
		"a matrix given twice": {
			drafts: append(matrix, matrix...), want: append(groupAnew("m-20261129-120000", 3), groupAnew("m-20261129-120000-4", 3)...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := Namer{RunID: c.runID, Store: storeWith(t, c.store...), Continue: !c.fresh, Now: at}
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

// of are the members of a group that goes on, groupAnew those of a new one.
func of(group string, count int) []producer.Options { return members(group, count, false) }

func groupAnew(group string, count int) []producer.Options { return members(group, count, true) }

// anew are ids that nobody chose.
func anew(ids ...string) []producer.Options {
	var opts []producer.Options
	for _, id := range ids {
		opts = append(opts, producer.Options{RunID: id, New: true})
	}
	return opts
}

// However long a name is, its ids are allowed, and no two are the same.
func TestLongNames(t *testing.T) {
	long := "a-name-as-long-as-a-name-may-be-and-perhaps-a-little-longer-xyz"
	n := Namer{Store: memstore.New(), Now: at}
	seen := map[string]bool{}
	for range 12 {
		for _, drafts := range [][]*producer.Draft{{draft(long, "d")}, {draft(long, "d"), draft(long, "e")}} {
			opts, err := n.File(t.Context(), drafts)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range opts {
				if len(o.RunID) > 63 || seen[o.RunID] {
					t.Errorf("id %s: %d characters, given before: %t", o.RunID, len(o.RunID), seen[o.RunID])
				}
				seen[o.RunID] = true
			}
		}
	}
}

// Between the look whether a name is free and its claim another command may come.
func TestSomebodyIsFaster(t *testing.T) {
	store := storeWith(t)
	n := Namer{Store: store, Now: at}
	var given []string
	submit := func(_ *producer.Draft, o producer.Options) error {
		given = append(given, o.RunID)
		if len(given) == 1 {
			if _, err := store.Create(t.Context(), bundle.Keys{Run: o.RunID}.RunFile(), []byte("theirs")); err != nil {
				return err
			}
			return &producer.TakenError{RunID: o.RunID}
		}
		return nil
	}
	if err := n.Submit(t.Context(), []*producer.Draft{draft("m", "d1"), draft("m", "d2")}, submit); err != nil {
		t.Fatal(err)
	}
	want := []string{"m-20261129-120000-1", "m-20261129-120000-3-1", "m-20261129-120000-3-2"} // -2 would look like the second run of the first
	if diff := cmp.Diff(want, given); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

// Any other trouble ends it, and nothing of the file is submitted after that.
func TestSubmitStops(t *testing.T) {
	n := Namer{Store: memstore.New(), Now: at}
	broken, calls := errors.New("broken"), 0
	err := n.Submit(t.Context(), []*producer.Draft{draft("m", "d1"), draft("m", "d2")}, func(*producer.Draft, producer.Options) error {
		calls++
		return broken
	})
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
