// SPDX-License-Identifier: Apache-2.0

package trials

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
)

// shelf is a store that a test fills.
type shelf struct {
	*testing.T
	bundle.Store
	uuid string
	made time.Time
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{T: t, Store: memstore.New(), made: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	id, err := bundle.OpenIdentity(t.Context(), s.Store)
	if err != nil {
		t.Fatal(err)
	}
	s.uuid = id.StoreUUID
	return s
}

// run makes a run, newer than those before, with so many trials of each task.
func (s *shelf) run(id string, repeats, partRows int, tasks ...string) manifest.RunRecord {
	s.Helper()
	keys := bundle.Keys{Run: id}
	w := bundle.NewPlanWriter(bundle.PlanLimits{Rows: partRows}, func(part int, body []byte, _ []bundle.PlanRow) error {
		return s.Put(s.Context(), keys.PlanPart(part), bytes.NewReader(body), int64(len(body)))
	})
	for _, task := range tasks {
		for i := range repeats {
			row := bundle.PlanRow{TaskID: task, TrialIndex: i, TrialID: s.id(id, task, i), Pack: strings.Repeat("0", 64)}
			if _, err := w.Add(row); err != nil {
				s.Fatal(err)
			}
		}
	}
	totals, err := w.Finish()
	if err != nil {
		s.Fatal(err)
	}
	s.made = s.made.Add(time.Minute)
	rec := manifest.RunRecord{SchemaVersion: 1, RunID: id, CreatedAt: s.made}
	rec.Plan = manifest.Plan{Tasks: len(tasks), Trials: totals.Rows, Parts: totals.Parts}
	body, err := dispatch.EncodeRun(rec)
	if err != nil {
		s.Fatal(err)
	}
	if _, err := s.Create(s.Context(), keys.RunFile(), body); err != nil {
		s.Fatal(err)
	}
	return rec
}

func (s *shelf) id(run, task string, index int) string {
	return bundle.TrialID(s.uuid, run, task, index)
}

func (s *shelf) claim(run, task string, index int) int {
	s.Helper()
	c, _, err := bundle.ClaimAttempt(s.Context(), s.Store, bundle.Keys{Run: run}, bundle.Claim{
		TrialID: s.id(run, task, index), TaskID: task, TrialIndex: index, Epoch: 1, Nonce: bundle.NewNonce(), At: s.made,
	})
	if err != nil {
		s.Fatal(err)
	}
	return c.Attempt
}

// commit gives a trial a result: a score, or none where it is below 0.
func (s *shelf) commit(run, task string, index, epoch int, ref bundle.PlanRef, score float64) {
	s.Helper()
	c := bundle.Commit{
		TrialID: s.id(run, task, index), TaskID: task, TrialIndex: index, Epoch: epoch, Attempt: s.claim(run, task, index),
		Nonce: bundle.NewNonce(), Plan: ref, At: s.made, Outcome: bundle.Outcome{Status: bundle.Completed, Scored: score >= 0},
	}
	if score >= 0 {
		c.Grade = bundle.Grade{Scored: true, Score: &score, BinaryPass: score >= 1}
	}
	if _, _, err := bundle.WriteCommit(s.Context(), s.Store, bundle.Keys{Run: run}, c); err != nil {
		s.Fatal(err)
	}
}

// walked is what Walk says, a line for each trial.
func (s *shelf) walked(rec manifest.RunRecord, f Filter) string {
	s.Helper()
	var b strings.Builder
	for t, err := range Walk(s.Context(), s.Store, rec, f) {
		if err != nil {
			s.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %d\n", t.Name(), t.State(), t.Attempts)
	}
	return b.String()
}

func TestWalk(t *testing.T) {
	s := newShelf(t)
	rec := s.run("r", 2, 3, "a", "b/c") // two parts: three rows and one
	s.commit("r", "a", 0, 1, bundle.PlanRef{Part: 0, Row: 0}, 1)
	s.claim("r", "a", 1) // a crash
	s.commit("r", "a", 1, 1, bundle.PlanRef{Part: 0, Row: 1}, 0.5)
	s.claim("r", "b/c", 0) // it runs
	s.commit("r", "b/c", 1, 1, bundle.PlanRef{Part: 1, Row: 0}, -1)
	all := "a#0 passed 1\na#1 failed 2\nb/c#0 missing 1\nb/c#1 unscored 1\n"
	for name, c := range map[string]struct {
		f    Filter
		want string
	}{
		"all":             {Filter{}, all},
		"by state":        {Filter{States: []State{Failed, Missing}}, "a#1 failed 2\nb/c#0 missing 1\n"},
		"by task":         {Filter{Tasks: []string{"b*"}}, "b/c#0 missing 1\nb/c#1 unscored 1\n"},
		"by both":         {Filter{States: []State{Unscored}, Tasks: []string{"a", "b*"}}, "b/c#1 unscored 1\n"},
		"none that match": {Filter{Tasks: []string{"x"}}, ""},
	} {
		if diff := cmp.Diff(c.want, s.walked(rec, c.f)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for range Walk(t.Context(), s.Store, rec, Filter{}) {
		break // nothing goes on behind the caller's back: the leak check would see it
	}
}

// A run that is longer than what is in memory at once comes out whole and in order.
func TestWalkIsInOrder(t *testing.T) {
	s := newShelf(t)
	var tasks []string
	var want strings.Builder
	for i := range 3*stretch + 7 {
		tasks = append(tasks, fmt.Sprintf("t%04d", i))
		fmt.Fprintf(&want, "t%04d#0 missing 0\n", i)
	}
	if diff := cmp.Diff(want.String(), s.walked(s.run("long", 1, 700, tasks...), Filter{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWalkOfAStoreThatFails(t *testing.T) {
	s := newShelf(t)
	rec := s.run("r", 1, 10, "a", "b")
	faulty := bundletest.NewFaulty(s.Store)
	faulty.Inject(bundletest.Fault{After: 2, Times: 1, Do: bundletest.Fail(bundle.ErrUnavailable)})
	var last error
	for _, err := range Walk(t.Context(), faulty, rec, Filter{}) {
		last = err
	}
	if !errors.Is(last, bundle.ErrUnavailable) {
		t.Errorf("error %v, want %v", last, bundle.ErrUnavailable)
	}
}

func TestFind(t *testing.T) {
	s := newShelf(t)
	s.run("old", 2, 1, "a", "new/a", "x#y")
	s.run("new", 1, 10, "a", "old/a", "old/b")
	s.commit("old", "a", 1, 1, bundle.PlanRef{Part: 1, Row: 0}, 1)
	s.claim("new", "a", 0)
	for word, want := range map[string]string{
		"a#0":                    "new a#0",
		"old/a#1":                "old a#1",     // a run goes before a task with a slash
		"old/b#0":                "new old/b#0", // but not where it has no such task
		"new/old/a#0":            "new old/a#0",
		"old/new/a#1":            "old new/a#1",
		"old/x#y#1":              "old x#y#1",
		s.id("old", "a", 1):      "old a#1", // with a commit
		s.id("new", "a", 0)[:10]: "new a#0", // with an attempt
		s.id("old", "a", 0)[:12]: "old a#0", // in the plan only
		s.id("new", "old/b", 0):  "new old/b#0",
	} {
		got, err := Find(t.Context(), s.Store, word)
		if err != nil {
			t.Errorf("%s: %v", word, err)
			continue
		}
		if name := got.Run + " " + got.Name(); name != want {
			t.Errorf("%s is %s, want %s", word, name, want)
		}
	}
	for _, word := range []string{
		"a#1", "a#-1", "a#01", "#0", "b#0", "old", "abc", "", "old/a#7", "none/a#0", strings.Repeat("0", 32), strings.Repeat("0", 33), "ABCD",
	} {
		_, err := Find(t.Context(), s.Store, word)
		if ce, ok := errors.AsType[*app.CodeError](err); !ok || ce.Code != app.ExitUsage {
			t.Errorf("%q: %v, want a usage error", word, err)
		}
	}
}

// Of ids that begin alike an error names some.
func TestFindNamesWhatAPrefixCouldMean(t *testing.T) {
	s := newShelf(t)
	var tasks []string
	for i := range 5000 {
		tasks = append(tasks, fmt.Sprint("t", i))
	}
	s.run("r", 1, 5000, tasks...)
	byPrefix := map[string][]string{}
	for _, task := range tasks {
		id := s.id("r", task, 0)
		byPrefix[id[:minPrefix]] = append(byPrefix[id[:minPrefix]], task)
	}
	for prefix, list := range byPrefix {
		if len(list) != 2 {
			continue
		}
		_, err := Find(t.Context(), s.Store, prefix)
		if err == nil || !strings.Contains(err.Error(), s.id("r", list[0], 0)+" (r/"+list[0]+"#0)") || !strings.Contains(err.Error(), list[1]+"#0") {
			t.Errorf("%v; want both %s and %s named", err, list[0], list[1])
		}
		s.claim("r", list[0], 0) // of which one has begun
		got, err := Find(t.Context(), s.Store, prefix)
		if err != nil || got.Row.TaskID != list[0] {
			t.Errorf("%s is %s, %v; want the one that began, %s", prefix, got.Row.TaskID, err, list[0])
		}
		return
	}
	t.Fatal("no two ids begin alike; more tasks would do")
}

// What was put back is shown with its last result.
func TestTheHighestEpochIsShown(t *testing.T) {
	s := newShelf(t)
	rec := s.run("r", 1, 10, "a", "b")
	s.commit("r", "a", 0, 1, bundle.PlanRef{Row: 0}, 0)
	s.commit("r", "b", 0, 1, bundle.PlanRef{Row: 1}, 0)
	_, err := bundle.AppendControl(t.Context(), s.Store, bundle.Keys{Run: "r"}, func([]bundle.Control) (bundle.Control, error) {
		return bundle.Control{Kind: bundle.ControlRetry, By: "test", Args: map[string]any{"epochs": map[string]any{
			s.id("r", "a", 0): 2.0, s.id("r", "b", 0): 2.0,
		}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.commit("r", "a", 0, 2, bundle.PlanRef{Row: 0}, 1)
	if diff := cmp.Diff("a#0 passed 2\nb#0 failed 1\n", s.walked(rec, Filter{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b, err := Find(t.Context(), s.Store, "b#0")
	if err != nil || b.Epoch != 2 || b.Commit.Epoch != 1 || b.Counted() != 1 {
		t.Errorf("%+v, %v; want epoch 2, open, shown with the commit of epoch 1", b, err)
	}
}

func TestNewest(t *testing.T) {
	s := newShelf(t)
	if _, err := Newest(t.Context(), s.Store); err == nil || !strings.Contains(err.Error(), "has no runs yet") {
		t.Errorf("of an empty store: %v", err)
	}
	s.run("b", 1, 1, "x")
	s.run("a", 1, 1, "x")
	if rec, err := Newest(t.Context(), s.Store); err != nil || rec.RunID != "a" {
		t.Errorf("%s, %v; want a", rec.RunID, err)
	}
}
