// SPDX-License-Identifier: Apache-2.0

package producer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/queue"
)

func TestSubmit(t *testing.T) {
	l := newLab(t, "a", "b/1")
	d := l.draft("repeats: 2\npriority: high\nlimits: {max_in_flight: 3}\n")
	var progress []producer.Progress
	p := l.producer()
	p.OnProgress = func(g producer.Progress) { progress = append(progress, g) }
	sub, err := p.Submit(t.Context(), d, producer.Options{RunID: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (producer.Progress{Total: 4, Planned: 4, Enqueued: 4}); sub.Progress != want || sub.Continued || len(progress) != 1 || progress[0] != want {
		t.Errorf("submission %+v, progress %+v", sub.Progress, progress)
	}
	stored, err := dispatch.LoadRun(t.Context(), l.store, "r1")
	if err != nil || stored.Plan != d.Plan || stored.Producer != "v1" || stored.CreatedAt.IsZero() {
		t.Errorf("run.yaml %+v, %v", stored, err)
	}
	rows, _ := l.planned(sub.Record)
	want := []bundle.PlanRow{{TaskID: "a"}, {TaskID: "a", TrialIndex: 1}, {TaskID: "b/1"}, {TaskID: "b/1", TrialIndex: 1}}
	for i := range want {
		want[i].TrialID = bundle.TrialID(storeUUID, "r1", want[i].TaskID, want[i].TrialIndex)
		want[i].Pack, want[i].Offset, want[i].Length = d.Packs[0].SHA256, rows[i].Offset, rows[i].Length
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	runs, err := l.queue.ListRuns(t.Context())
	if err != nil || len(runs) != 1 || runs[0].Priority != queue.High || runs[0].Limits.MaxInFlight != 3 || runs[0].Class != "scripted" {
		t.Errorf("runs of the queue %+v, %v", runs, err)
	}
	if got := l.checkJobs(sub.Record, l.take(4)); len(got) != 4 {
		t.Errorf("jobs of %d trials", len(got))
	}
}

func TestPoolOfTheProducer(t *testing.T) {
	l := newLab(t, "a")
	p := l.producer()
	p.Pool = "here"
	if _, err := p.Submit(t.Context(), l.draft("pool: elsewhere\n"), producer.Options{RunID: "r1"}); err != nil {
		t.Fatal(err)
	}
	runs, _ := l.queue.ListRuns(t.Context())
	stored, _ := dispatch.LoadRun(t.Context(), l.store, "r1")
	if runs[0].Pool != "here" || stored.Run.Pool != "elsewhere" {
		t.Errorf("pool %s of the queue, %s of run.yaml", runs[0].Pool, stored.Run.Pool)
	}
}

// The same run submitted twice: only what has no commit is put in, and nothing that is
// live is put in twice.
func TestContinue(t *testing.T) {
	l := newLab(t, numbered(10)...)
	d := l.draft("")
	first := l.submit(d, "r1")
	rows, _ := l.planned(first.Record)
	before := l.objects("runs/")

	again := l.submit(l.draft(""), "r1")
	if want := (producer.Progress{Total: 10, Planned: 10}); !again.Continued || again.Progress != want || l.live("r1") != 10 {
		t.Errorf("submitted again: %+v, %d live", again, l.live("r1"))
	}
	l.take(10)
	l.commit("r1", rows[:4]...)
	third := l.submit(l.draft("limits: {max_in_flight: 2}\nretry: {max_attempts: 9}\n"), "r1")
	if want := (producer.Progress{Total: 10, Planned: 10, Committed: 4, Enqueued: 6}); third.Progress != want || l.live("r1") != 6 {
		t.Errorf("continued: %+v, %d live", third.Progress, l.live("r1"))
	}
	if third.Record.CreatedAt != first.Record.CreatedAt || third.Record.Run.Retry.MaxAttempts != 3 {
		t.Errorf("the record is that of the first time: %+v", third.Record)
	}
	jobs := l.take(6)
	for i, trial := range l.checkJobs(third.Record, jobs) {
		for _, row := range rows[:4] {
			if trial == row.TrialID {
				t.Errorf("job %d is of a trial that is done", i)
			}
		}
	}
	after := l.objects("runs/")
	for key, body := range before {
		if after[key] != body {
			t.Errorf("%s was changed", key)
		}
	}
}

// Deduplication never swallows what a purge dropped.
func TestContinueAfterPurge(t *testing.T) {
	l := newLab(t, "a", "b")
	l.submit(l.draft(""), "r1")
	if _, err := l.queue.PurgeRun(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	if sub := l.submit(l.draft(""), "r1"); sub.Enqueued != 2 || l.live("r1") != 2 {
		t.Errorf("%+v, %d live", sub.Progress, l.live("r1"))
	}
}

func TestAnotherPlanIsRefused(t *testing.T) {
	l := newLab(t, "a", "b")
	l.submit(l.draft(""), "r1")
	before := l.objects("")
	for name, test := range map[string]struct{ extra, want string }{
		"repeats": {"repeats: 2\n", "repeats"},
		"policy":  {"agent_processes: keep\n", "agent_processes"},
		"grade":   {"grade: {pass_threshold: 0.5}\n", "grade.pass_threshold"},
		"tasks":   {"select: {tasks: [a]}\n", "tasks"},
	} {
		_, err := l.producer().Submit(t.Context(), l.draft(test.extra), producer.Options{RunID: "r1"})
		conflict, ok := errors.AsType[*producer.PlanConflictError](err)
		if !ok || conflict.RunID != "r1" || !strings.Contains(strings.Join(conflict.Keys, " "), test.want) {
			t.Errorf("%s: %v; want a conflict that names %s", name, err, test.want)
		}
	}
	l.rows("pack", "a", "b", "c")
	_, err := l.producer().Submit(t.Context(), l.draft(""), producer.Options{RunID: "r1"})
	if _, ok := errors.AsType[*producer.PlanConflictError](err); !ok || !strings.Contains(err.Error(), "packs[0]") {
		t.Errorf("another pack: %v", err)
	}
	if diff := cmp.Diff(before, l.objects("")); diff != "" {
		t.Errorf("something was written:\n%s", diff)
	}
}

func TestBadRunID(t *testing.T) {
	l := newLab(t, "a")
	d := l.draft("")
	for _, id := range []string{"R1", "-x", "a/b", "a.b", strings.Repeat("x", 64)} {
		if _, err := l.producer().Submit(t.Context(), d, producer.Options{RunID: id}); err == nil || !strings.Contains(err.Error(), "run id") {
			t.Errorf("%q: %v", id, err)
		}
	}
	if len(l.objects("")) > 0 {
		t.Error("something was written")
	}
}

// An id that was made for a run is no run to go on with, whatever the plan of the one that
// has it; an id that somebody chose is.
func TestNewRunIDsAreNotContinued(t *testing.T) {
	l := newLab(t, "a")
	d := l.draft("")
	l.submit(d, "r1")
	for name, d := range map[string]*producer.Draft{"the same plan": d, "another plan": l.draft("repeats: 2\n")} {
		_, err := l.producer().Submit(t.Context(), d, producer.Options{RunID: "r1", New: true})
		if taken, ok := errors.AsType[*producer.TakenError](err); !ok || taken.RunID != "r1" {
			t.Errorf("%s: %v; want the id to be taken", name, err)
		}
	}
	if sub, err := l.producer().Submit(t.Context(), d, producer.Options{RunID: "r1"}); err != nil || !sub.Continued {
		t.Errorf("%+v, %v", sub, err)
	}
	if sub, err := l.producer().Submit(t.Context(), d, producer.Options{RunID: "r2", New: true}); err != nil || sub.Continued {
		t.Errorf("%+v, %v", sub, err)
	}
}

// Runs that nobody named never share an id, however many begin within a second.
func TestDefaultRunIDs(t *testing.T) {
	l := newLab(t, "a")
	synctest.Test(t, func(t *testing.T) { // where the time stands still
		d, err := producer.NewDraft(t.Context(), l.load("")[0], l.options(), l.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		var ids []string
		for range 3 {
			sub, err := l.producer().Submit(t.Context(), d, producer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if sub.Continued || sub.Enqueued != 1 {
				t.Errorf("%+v", sub)
			}
			ids = append(ids, sub.Record.RunID)
			time.Sleep(10 * time.Millisecond) // of the bubble
		}
		want := []string{"lab-20000101-000000", "lab-20000101-000000-2", "lab-20000101-000000-3"}
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRunIDsFit(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	long := strings.Repeat("n", 63)
	if id := producer.NewRunID("x", at, 1); id != "x-20260301-120000" {
		t.Errorf("id %s", id)
	}
	if id := producer.NewRunID(long, at, 1); len(id) != 63 || !strings.HasSuffix(id, "-20260301-120000") {
		t.Errorf("id %s", id)
	}
	if id := producer.NewGroupID(long, at, 1) + "-1000"; len(id) != 63 {
		t.Errorf("id %s of %d characters", id, len(id))
	}
	if id := producer.NewRunID(long, at, 12); len(id) != 63 || !strings.HasSuffix(id, "n-20260301-120000-12") {
		t.Errorf("id %s", id)
	}
	if id := producer.NewGroupID(long, at, 12) + "-1000"; len(id) != 63 || !strings.HasSuffix(id, "n-20260301-120000-12-1000") {
		t.Errorf("id %s", id)
	}
}

// Tasks that change between the two passes are noticed before anything wrong is stored.
func TestTasksChanged(t *testing.T) {
	for name, change := range map[string]func(l *lab){
		"another id":    func(l *lab) { l.rows("pack", "a", "x", "c") },
		"one more":      func(l *lab) { l.rows("pack", "a", "b", "c", "d") },
		"one less":      func(l *lab) { l.rows("pack", "a", "b") },
		"another order": func(l *lab) { l.rows("pack", "b", "a", "c") },
		"other places": func(l *lab) {
			l.write("pack/rows.jsonl", "{\"id\": \"a\", \"n\": 1}\n{\"id\": \"b\"}\n{\"id\": \"c\"}\n")
		},
		"broken":          func(l *lab) { l.write("pack/rows.jsonl", "{\"id\": \"a\"}\n{\"id\": \"b\"}\n{\n") },
		"none is left":    func(l *lab) { l.rows("pack", "z") },
		"a duplicate row": func(l *lab) { l.rows("pack", "a", "b", "c", "a") },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "a", "b", "c")
			d := l.draft("select: {tasks: [a, b, c, \"d*\", \"x*\"]}\n")
			change(l)
			_, err := l.producer().Submit(t.Context(), d, producer.Options{RunID: "r1"})
			if !errors.Is(err, producer.ErrTasksChanged) || !strings.Contains(err.Error(), "r1") {
				t.Errorf("got %v", err)
			}
			if l.live("r1") != 0 || len(l.objects("runs/r1/plan/")) != 0 {
				t.Errorf("%d jobs, plan %v", l.live("r1"), l.objects("runs/r1/plan/"))
			}
			// With the tasks as they were, the same run goes on.
			l.rows("pack", "a", "b", "c")
			if sub := l.submit(d, "r1"); sub.Enqueued != 3 {
				t.Errorf("%+v", sub.Progress)
			}
		})
	}
}

// A plan that was cut in another way, by another version, is not mixed with ours.
func TestOtherPartsAreRefused(t *testing.T) {
	l := newLab(t, "a", "b")
	sub := l.submit(l.draft(""), "r1")
	rows, _ := l.planned(sub.Record)
	w := bundle.NewPlanWriter(bundle.PlanLimits{}, func(part int, body []byte, _ []bundle.PlanRow) error {
		return l.store.Put(t.Context(), bundle.Keys{Run: "r1"}.PlanPart(part), strings.NewReader(string(body)), -1)
	})
	if _, err := w.Add(rows[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	_, err := l.producer().Submit(t.Context(), l.draft(""), producer.Options{RunID: "r1"})
	if err == nil || !strings.Contains(err.Error(), "other rows") || !strings.Contains(err.Error(), "part 0") {
		t.Errorf("got %v", err)
	}
}

// Wherever the store fails, submitting again makes it whole: every trial planned and
// enqueued once.
func TestSubmitAgainAfterAnyFailure(t *testing.T) {
	total := 0
	for n := 0; n == 0 || n < total; n++ {
		for _, do := range []bundletest.Action{bundletest.Fail(bundle.ErrUnavailable), bundletest.DropAnswer()} {
			l := newLab(t, "a", "b", "c")
			d := l.draft("")
			remove := l.store.Inject(bundletest.Fault{After: n, Do: do}) // from here on, nothing works
			_, err := l.producer().Submit(t.Context(), d, producer.Options{RunID: "r1"})
			remove()
			sub := l.submit(d, "r1")
			if l.live("r1") != 3 || sub.Planned != 3 {
				t.Errorf("failure %d (%v): %d live, %+v", n, err, l.live("r1"), sub.Progress)
			}
			l.checkJobs(sub.Record, l.take(3))
			if n == 0 {
				l := newLab(t, "a", "b", "c")
				l.submit(l.draft(""), "r1")
				for _, op := range []bundletest.Op{bundletest.OpCreate, bundletest.OpPut, bundletest.OpGet, bundletest.OpGetRange, bundletest.OpList} {
					total += l.store.Calls(op)
				}
			}
		}
	}
	if total < 4 {
		t.Errorf("%d calls in all; too few to believe", total)
	}
}

// A crash between a part of the plan and its jobs: they are put in the next time.
func TestCrashBeforeEnqueue(t *testing.T) {
	l := newLab(t, "a", "b")
	d := l.draft("")
	p := l.producer()
	p.Queue = brokenQueue{l.queue}
	if _, err := p.Submit(t.Context(), d, producer.Options{RunID: "r1"}); !errors.Is(err, queue.ErrUnreachable) {
		t.Fatalf("got %v", err)
	}
	if len(l.objects("runs/r1/plan/")) != 1 || l.live("r1") != 0 {
		t.Error("the crash came at another place")
	}
	if sub := l.submit(d, "r1"); sub.Enqueued != 2 || !sub.Continued {
		t.Errorf("%+v", sub)
	}
}

// An answer that was lost on the way back from taking the id makes no second run.
func TestOwnRunIsNobodyElses(t *testing.T) {
	for _, err := range []error{bundle.ErrUnavailable, bundle.ErrExists} {
		l := newLab(t, "a")
		p := l.producer()
		p.Store = lostAnswer{l.store, err}
		sub, err := p.Submit(t.Context(), l.draft(""), producer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if runs := l.objects("runs/"); sub.Continued || strings.HasSuffix(sub.Record.RunID, "-2") || len(runs) != 2 {
			t.Errorf("%+v, %d objects", sub, len(runs))
		}
	}
}

// lostAnswer is a store that takes run.yaml and says that it did not.
type lostAnswer struct {
	bundle.Store
	err error
}

func (s lostAnswer) Create(ctx context.Context, key string, body []byte) (bundle.Version, error) {
	v, err := s.Store.Create(ctx, key, body)
	if err == nil && strings.HasSuffix(key, "run.yaml") {
		return "", s.err
	}
	return v, err
}
