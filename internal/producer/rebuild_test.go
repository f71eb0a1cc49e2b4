// SPDX-License-Identifier: Apache-2.0

package producer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/queue/memqueue"
)

// A queue that lost everything has what is missing again: the plan without what is
// committed, each in its current epoch, and nothing twice.
func TestRebuildAnEmptyQueue(t *testing.T) {
	l := newLab(t, numbered(5)...)
	rec := l.submit(l.draft("repeats: 2\n"), "r").Record
	rows, _ := l.planned(rec)
	l.commit("r", rows[:4]...)
	_, err := bundle.AppendControl(t.Context(), l.store, bundle.Keys{Run: "r"}, func([]bundle.Control) (bundle.Control, error) {
		return bundle.Control{Kind: bundle.ControlRetry, Epochs: bundle.Epochs{rows[0].TrialID: 2}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if l.queue, err = memqueue.New(memqueue.Config{}); err != nil {
		t.Fatal(err)
	}
	for _, enqueued := range []int{7, 0} {
		a := l.must(rec, resume)
		if a.Changed || a.Trials != 7 || a.Enqueued != enqueued {
			t.Fatalf("%+v, want %d enqueued", *a, enqueued)
		}
	}
	jobs := l.take(7)
	l.checkJobs(rec, jobs)
	for _, j := range jobs {
		want := 1
		if j.Trial == rows[0].TrialID {
			want = 2
		}
		if j.Epoch != want {
			t.Errorf("job %s, want epoch %d", j.ID, want)
		}
	}
	// All of them were answered and none committed: larger releases come again.
	if a := l.must(rec, resume); a.Enqueued != 7 {
		t.Errorf("%+v", *a)
	}
	if next := l.take(1)[0]; next.Release <= jobs[0].Release {
		t.Errorf("release %d after %d", next.Release, jobs[0].Release)
	}
}

func TestRebuildOfHalfAPlan(t *testing.T) {
	l := newLab(t, "a")
	rec := l.submit(l.draft(""), "r").Record
	if err := l.store.Delete(t.Context(), bundle.Keys{Run: "r"}.PlanPart(0)); err != nil {
		t.Fatal(err)
	}
	_, err := l.producer().Rebuild(t.Context(), rec)
	refused, ok := errors.AsType[*producer.RefusedError](err)
	if !ok || !strings.Contains(refused.Text, "part 0 of 1 of its plan isn't in the store") || !strings.Contains(refused.Fix, "--run-id r") {
		t.Errorf("%v", err)
	}
}
