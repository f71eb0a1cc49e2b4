// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/worker"
)

func event(kind worker.EventKind, trial string) worker.Event {
	return worker.Event{Kind: kind, Run: "r", TaskID: "t", TrialID: trial, Attempt: 1, At: time.Unix(1000, 0).UTC()}
}

// committed is a trial that is done: passed, failed or without a score.
func committed(trial, how string) worker.Event {
	e := event(worker.Committed, trial)
	switch how {
	case "passed":
		e.Outcome, e.Grade = bundle.Outcome{Scored: true}, bundle.Grade{BinaryPass: true}
	case "failed":
		e.Outcome = bundle.Outcome{Scored: true}
	default:
		e.Outcome = bundle.Outcome{FailureClass: bundle.FailureClass(how), TerminationReason: how + "_error"}
	}
	return e
}

func TestTrackerCounts(t *testing.T) {
	tr := NewTracker(4)
	tr.Plan("r", 10, 2)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		tr.Observe(event(worker.Started, id))
	}
	phase := event(worker.Phase, "f")
	phase.Phase = "grade"
	for _, e := range []worker.Event{
		committed("a", "passed"), committed("b", "failed"), committed("c", "grader"),
		event(worker.Retrying, "d"), event(worker.Dropped, "e"), phase,
	} {
		tr.Observe(e)
	}
	s := tr.Snapshot()
	want := Counts{Total: 10, Before: 2, Done: 5, Passed: 1, Failed: 1, Unscored: map[string]int{"grader": 1}, Retries: 1}
	if diff := cmp.Diff(want, s.Runs["r"]); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if len(s.Running) != 1 || s.Running[0].TrialID != "f" || s.Running[0].Phase != "grade" {
		t.Errorf("running %+v; want f in its grade phase", s.Running)
	}
	// The plan grows while it is submitted, and events may come first.
	tr.Plan("r", 20, 3)
	if c := tr.Snapshot().Runs["r"]; c.Done != 6 || c.Total != 20 || c.Before != 3 {
		t.Errorf("after the plan grew: %+v", c)
	}
	// A snapshot is nobody else's.
	s.Runs["r"].Unscored["grader"] = 100
	if n := tr.Snapshot().Runs["r"].Unscored["grader"]; n != 1 {
		t.Errorf("a snapshot changed the tracker: %d", n)
	}
}

// A trial on its way to the store holds no slot: another runs in it.
func TestTrackerTellsUploadsApart(t *testing.T) {
	tr := NewTracker(1)
	upload := event(worker.Phase, "a")
	upload.Phase = worker.PhaseUpload
	for _, e := range []worker.Event{event(worker.Started, "a"), upload, event(worker.Started, "b")} {
		tr.Observe(e)
	}
	s := tr.Snapshot()
	if len(s.Running) != 1 || s.Running[0].TrialID != "b" || len(s.Uploading) != 1 || s.Uploading[0].TrialID != "a" {
		t.Errorf("running %+v, uploading %+v; want b and a", s.Running, s.Uploading)
	}
	tr.Observe(committed("a", "passed"))
	if s := tr.Snapshot(); len(s.Running) != 1 || len(s.Uploading) != 0 {
		t.Errorf("running %+v, uploading %+v; want only b", s.Running, s.Uploading)
	}
}

// A phase of an attempt that ended already (events of one trial come in order, but a
// client may be late) leaves nothing that seems to run for ever.
func TestTrackerIgnoresPhasesOfWhatDoesNotRun(t *testing.T) {
	tr := NewTracker(1)
	tr.Observe(event(worker.Phase, "gone"))
	if s := tr.Snapshot(); len(s.Running) != 0 {
		t.Errorf("running %+v; want nothing", s.Running)
	}
}

func TestTrackerTellsOfChanges(t *testing.T) {
	tr := NewTracker(1)
	select {
	case <-tr.Changed():
		t.Fatal("something changed before anything happened")
	default:
	}
	tr.Plan("r", 1, 0)
	tr.Observe(event(worker.Started, "a"))
	<-tr.Changed() // several changes are one
	select {
	case <-tr.Changed():
		t.Fatal("told twice")
	default:
	}
}

func TestSumAndETA(t *testing.T) {
	begin := time.Unix(1000, 0)
	s := Snapshot{Since: begin, Runs: map[string]Counts{
		"a": {Total: 20, Before: 10, Done: 14, Passed: 3, Unscored: map[string]int{"infra": 1}},
		"b": {Total: 10, Done: 1, Failed: 1, Unscored: map[string]int{"infra": 2, "grader": 1}, Retries: 5},
	}}
	want := Counts{Total: 30, Before: 10, Done: 15, Passed: 3, Failed: 1, Unscored: map[string]int{"infra": 3, "grader": 1}, Retries: 5}
	if diff := cmp.Diff(want, s.Sum()); diff != "" {
		t.Errorf("sum (-want +got):\n%s", diff)
	}
	if n := s.Sum().Errors(); n != 4 {
		t.Errorf("errors %d; want 4", n)
	}
	// 5 in 50 s, so the other 15 take 150 s.
	if eta := s.ETA(begin.Add(50 * time.Second)); eta != 150*time.Second {
		t.Errorf("eta %s; want 2m30s", eta)
	}
	for name, c := range map[string]Counts{
		"two say nothing yet":   {Total: 10, Done: 2},
		"what was there before": {Total: 10, Done: 9, Before: 7},
		"all is done":           {Total: 10, Done: 10},
		"nothing is planned":    {},
	} {
		if eta := (Snapshot{Since: begin, Runs: map[string]Counts{"r": c}}).ETA(begin.Add(time.Minute)); eta != 0 {
			t.Errorf("%s: eta %s; want none", name, eta)
		}
	}
}
