// SPDX-License-Identifier: Apache-2.0

package trials

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/manifest"
)

// noIndex stands for the index of a word that has none.
const noIndex = -1

// spot is where a task is looked for, by what a word calls it.
type spot struct {
	rec    manifest.RunRecord
	prefix string // before the names of its trials; empty in the newest run
	task   string
	trials int    // how many that task has there; 0 when there is none
	near   string // a task that may be meant
}

// noTrial says that a word names no trial, and what it may mean: a task with other trials,
// a task or a run with a similar name, a run. That costs a look at all trials of a run or
// two, which nobody pays who wrote it right.
func noTrial(ctx context.Context, s bundle.Store, word, task string, index int) error {
	if index == noIndex && word != "" {
		if rec, err := ExistingRun(ctx, s, word); rec != nil || err != nil {
			return or(err, app.Usage(app.Hint(fmt.Errorf("no trial %.200q", word),
				"it is a run; a trial of it is %s/TASK#INDEX, and tidemill ls %s lists them", word, word)))
		}
	}
	spots, err := spotsOf(ctx, s, task)
	if err != nil {
		return err
	}
	none := fmt.Errorf("no trial %.200q", word)
	if index != noIndex {
		none = fmt.Errorf("%w in run %s", none, spots[0].rec.RunID)
		if spots[0].prefix == "" {
			none = fmt.Errorf("%w, the newest", none)
		}
	}
	hint, err := meant(ctx, s, spots, task, index)
	if err != nil {
		return err
	}
	switch {
	case hint != "":
	case index == noIndex:
		hint = fmt.Sprintf("a trial is %d or more characters of its id, TASK#INDEX or RUN/TASK#INDEX; tidemill ls RUN lists them", minPrefix)
	default:
		hint = fmt.Sprintf("tidemill ls %s lists its trials; one of another run is RUN/TASK#INDEX", spots[0].rec.RunID)
	}
	return app.Usage(app.Hint(none, "%s", hint))
}

// spotsOf are the run that a word names before a slash, if there is one, and the newest
// run, with what each has of the task.
func spotsOf(ctx context.Context, s bundle.Store, task string) ([]spot, error) {
	var spots []spot
	if run, rest, cut := strings.Cut(task, "/"); cut && rest != "" {
		rec, err := ExistingRun(ctx, s, run)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			spots = append(spots, spot{rec: *rec, prefix: run + "/", task: rest})
		}
	}
	newest, err := Newest(ctx, s)
	if err != nil {
		return nil, err
	}
	spots = append(spots, spot{rec: newest, task: task})
	for i := range spots {
		if err := spots[i].look(ctx, s); err != nil {
			return nil, err
		}
	}
	return spots, nil
}

// look counts the trials of the task, and finds the task that is called most like it.
func (p *spot) look(ctx context.Context, s bundle.Store) error {
	last := ""
	for part := range p.rec.Plan.Parts {
		rows, err := bundle.ReadPlanPart(ctx, s, bundle.Keys{Run: p.rec.RunID}, part)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.TaskID == p.task {
				p.trials++
			} else if r.TaskID != last && p.task != "" {
				p.near = manifest.Nearest(p.task, []string{p.near, r.TaskID})
			}
			last = r.TaskID
		}
	}
	return nil
}

// meant is what a word may mean, "" when nothing is like it.
func meant(ctx context.Context, s bundle.Store, spots []spot, task string, index int) (string, error) {
	for _, p := range spots {
		if p.trials > 0 {
			return fmt.Sprintf("task %s of run %s has %s: %s", p.task, p.rec.RunID, app.Count(p.trials, "trial"), span(p.prefix+p.task, p.trials)), nil
		}
	}
	for _, p := range spots {
		if p.near == "" {
			continue
		}
		other := spot{rec: p.rec, task: p.near}
		if err := other.look(ctx, s); err != nil {
			return "", err
		}
		if index >= other.trials || index == noIndex {
			index = 0
		}
		return fmt.Sprintf("did you mean %s? tidemill ls %s lists the trials", p.prefix+Name(p.near, index), p.rec.RunID), nil
	}
	return meantRun(ctx, s, task, index)
}

// meantRun looks whether the name of a run was written wrongly, alone or before a task.
func meantRun(ctx context.Context, s bundle.Store, task string, index int) (string, error) {
	run, rest, cut := strings.Cut(task, "/")
	near, err := nearRun(ctx, s, run)
	if near == "" || err != nil {
		return "", err
	}
	if !cut {
		if index != noIndex {
			return "", nil // a task was meant
		}
		return fmt.Sprintf("did you mean the run %s? A trial of it is %s/TASK#INDEX, and tidemill ls lists the runs", near, near), nil
	}
	rec, err := ExistingRun(ctx, s, near)
	if rec == nil || err != nil {
		return "", err
	}
	there := spot{rec: *rec, task: rest}
	if err := there.look(ctx, s); err != nil || there.trials == 0 {
		return "", err
	}
	if index >= there.trials || index == noIndex {
		index = 0
	}
	return fmt.Sprintf("did you mean %s/%s? tidemill ls lists the runs", near, Name(rest, index)), nil
}

// nearRun returns the run that may be meant by a name, "" when none is called like it.
func nearRun(ctx context.Context, s bundle.Store, name string) (near string, err error) {
	for id, err := range bundle.ListRuns(ctx, s) {
		if err != nil {
			return "", err
		}
		near = manifest.Nearest(name, []string{near, id})
	}
	return near, nil
}

// span names the trials of a task.
func span(task string, trials int) string {
	if trials == 1 {
		return Name(task, 0)
	}
	return fmt.Sprintf("%s to %s", Name(task, 0), Name(task, trials-1))
}

func or(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
