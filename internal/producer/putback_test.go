// SPDX-License-Identifier: Apache-2.0

package producer_test

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// end commits an epoch of a row: passed, failed or unscored.
func (l *lab) end(run string, row bundle.PlanRow, epoch int, how string) {
	l.t.Helper()
	c := bundle.Commit{TrialID: row.TrialID, TaskID: row.TaskID, TrialIndex: row.TrialIndex, Epoch: epoch, Attempt: epoch, Nonce: "n"}
	c.Outcome = bundle.Outcome{Status: bundle.Completed, TerminationReason: bundle.ReasonAgentDone, Scored: how != "unscored"}
	if how == "unscored" {
		c.Outcome.TerminationReason, c.Outcome.FailureClass = bundle.ReasonSetupError, bundle.TaskFailure
	}
	c.Grade.BinaryPass = how == "passed"
	if _, _, err := bundle.WriteCommit(l.t.Context(), l.store, bundle.Keys{Run: run}, c); err != nil {
		l.t.Fatal(err)
	}
}

// decisions are the control records of a run, as "kind: trials by row → epoch".
func (l *lab) decisions(run string, rows []bundle.PlanRow) []string {
	l.t.Helper()
	records, err := bundle.ReadControl(l.t.Context(), l.store.Store, bundle.Keys{Run: run})
	if err != nil {
		l.t.Fatal(err)
	}
	var out []string
	for _, c := range records {
		text := c.Kind + ":"
		for i, row := range rows {
			if epoch, ok := c.Epochs[row.TrialID]; ok {
				text += fmt.Sprintf(" %d→%d", i, epoch)
			}
		}
		out = append(out, text)
	}
	return out
}

// jobs takes what is in the queue, as "row.epoch".
func (l *lab) jobs(rec manifest.RunRecord) []string {
	l.t.Helper()
	rows, _ := l.planned(rec)
	taken := l.take(l.live(rec.RunID))
	l.checkJobs(rec, taken)
	for taken := time.Now().UnixMilli(); time.Now().UnixMilli() == taken; {
		goruntime.Gosched() // what is published from now on has another release
	}
	var out []string
	for i, row := range rows {
		for _, j := range taken {
			if j.Trial == row.TrialID {
				out = append(out, fmt.Sprintf("%d.%d", i, j.Epoch))
			}
		}
	}
	return out
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestPutBack(t *testing.T) {
	l := newLab(t, "a", "b/1", "b/2", "c")
	rec := l.submit(l.draft("repeats: 2\n"), "r1").Record
	rows, _ := l.planned(rec)
	l.jobs(rec)
	for i, how := range []string{"passed", "failed", "failed", "unscored", "passed", "failed"} { // c is not done
		l.end("r1", rows[i], 1, how)
	}
	put := func(kind string, s producer.Selection) (*producer.Reopened, error) {
		return l.producer().PutBack(t.Context(), rec, producer.PutBack{Kind: kind, By: "me", Select: s})
	}
	re, err := put(bundle.ControlRetry, producer.Selection{Which: producer.Failed, Tasks: []string{"b/*", "c"}})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "reopened", []any{false, 2, 2, 2, map[string]int{"not done yet": 2}}, []any{re.Continued, re.Trials, re.Tasks, re.Enqueued, re.LeftOut})
	same(t, "jobs", []string{"2.2", "5.2"}, l.jobs(rec))
	if re.Control.By != "me" || re.Control.Rev != 1 || re.Control.At.IsZero() {
		t.Errorf("decision %+v", re.Control)
	}

	// The same again goes on with what is open; one of them is done and still failed.
	l.end("r1", rows[2], 2, "failed")
	re, err = put(bundle.ControlRetry, producer.Selection{Which: producer.Failed, Tasks: []string{"c", "b/*"}})
	if err != nil || !re.Continued || re.Trials != 1 || re.Control.Rev != 1 {
		t.Errorf("%+v, %v", re, err)
	}
	same(t, "jobs", []string{"5.2"}, l.jobs(rec))

	// Another decision takes over what is open, in the same epoch.
	if re, err = put(bundle.ControlRegrade, producer.Selection{Tasks: []string{"b/*"}}); err != nil || re.Continued {
		t.Errorf("%+v, %v", re, err)
	}
	same(t, "jobs", []string{"2.3", "3.2", "4.2", "5.2"}, l.jobs(rec))
	same(t, "decisions", []string{"retry: 2→2 5→2", "regrade: 2→3 3→2 4→2 5→2"}, l.decisions("r1", rows))

	// A run that goes on asks for current epochs, and is finished when they are done.
	l.end("r1", rows[6], 1, "passed")
	l.end("r1", rows[7], 1, "passed")
	find := func() bool {
		found, err := producer.FindUnfinished(t.Context(), l.store, rec.Plan.Digest, nil)
		if err != nil {
			t.Fatal(err)
		}
		return found != nil
	}
	if n, err := dispatch.CountDone(t.Context(), l.store, "r1"); err != nil || n != 4 || !find() {
		t.Errorf("%d done, %v", n, err)
	}
	sub := l.submit(l.draft("repeats: 2\n"), "r1")
	same(t, "continued", producer.Progress{Total: 8, Planned: 8, Committed: 4, Enqueued: 4}, sub.Progress)
	same(t, "jobs", []string{"2.3", "3.2", "4.2", "5.2"}, l.jobs(rec))
	for i, epoch := range map[int]int{2: 3, 3: 2, 4: 2, 5: 2} {
		l.end("r1", rows[i], epoch, "passed")
	}
	if n, err := dispatch.CountDone(t.Context(), l.store, "r1"); err != nil || n != 8 || find() {
		t.Errorf("%d done, %v; it is found unfinished: %t", n, err, find())
	}

	// Done once, the same decision is a new one.
	if re, err = put(bundle.ControlRegrade, producer.Selection{Tasks: []string{"b/*"}}); err != nil || re.Continued || re.Control.Rev != 3 {
		t.Errorf("%+v, %v", re, err)
	}
	same(t, "jobs", []string{"2.4", "3.3", "4.3", "5.3"}, l.jobs(rec))
}

func TestPutBackNothing(t *testing.T) {
	l := newLab(t, "a", "b")
	rec := l.submit(l.draft(""), "r1").Record
	rows, _ := l.planned(rec)
	l.end("r1", rows[0], 1, "passed")
	for want, s := range map[string]producer.Selection{
		"run r1 has no trial to retry in this selection --task a --failed": {Which: producer.Failed, Tasks: []string{"a"}},
		"run r1 has no trial to retry in this selection --class infra":     {Classes: []string{"infra"}, Tasks: []string{"a"}},
		"run r1 has no trial to retry: 1 not done yet":                     {Which: producer.Failed},
		"want at least the first 4 characters":                             {Trials: []string{"abc"}},
		"no selected trial whose id begins with":                           {Trials: []string{"ffffffffffffffff"}},
		"no selected trial whose id begins with " + rows[0].TrialID:        {Trials: []string{rows[0].TrialID}, Tasks: []string{"b"}},
	} {
		_, err := l.producer().PutBack(t.Context(), rec, producer.PutBack{Kind: bundle.ControlRetry, Select: s})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", s, err, want)
		}
	}
	same(t, "decisions", []string(nil), l.decisions("r1", rows))
	re, err := l.producer().PutBack(t.Context(), rec, producer.PutBack{Kind: bundle.ControlRetry, Select: producer.Selection{Trials: []string{rows[0].TrialID[:8]}}})
	if err != nil || re.Trials != 1 {
		t.Errorf("%+v, %v", re, err)
	}
}

// Whatever fails on the way, giving the decision again ends in the same state.
func TestPutBackCanBeRepeated(t *testing.T) {
	for name, fail := range map[string]func(l *lab) *producer.Producer{
		"nothing was written": func(l *lab) *producer.Producer {
			l.store.Inject(bundletest.Fault{Op: bundletest.OpCreate, Times: 1, Do: bundletest.Fail(bundle.ErrUnavailable)})
			return l.producer()
		},
		"the answer was lost": func(l *lab) *producer.Producer {
			l.store.Inject(bundletest.Fault{Op: bundletest.OpCreate, Times: 1, Do: bundletest.DropAnswer()})
			return l.producer()
		},
		"nothing was enqueued": func(l *lab) *producer.Producer {
			p := l.producer()
			p.Queue = brokenQueue{l.queue}
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "a", "b")
			rec := l.submit(l.draft(""), "r1").Record
			rows, _ := l.planned(rec)
			l.jobs(rec)
			for _, row := range rows {
				l.end("r1", row, 1, "failed")
			}
			o := producer.PutBack{Kind: bundle.ControlRegrade, Select: producer.Selection{Which: producer.Failed}}
			_, err := fail(l).PutBack(t.Context(), rec, o)
			if !errors.Is(err, bundle.ErrUnavailable) && !errors.Is(err, queue.ErrUnreachable) {
				t.Fatalf("got %v", err)
			}
			if _, err := l.producer().PutBack(t.Context(), rec, o); err != nil {
				t.Fatal(err)
			}
			same(t, "decisions", []string{"regrade: 0→2 1→2"}, l.decisions("r1", rows))
			same(t, "jobs", []string{"0.2", "1.2"}, l.jobs(rec))
		})
	}
}
