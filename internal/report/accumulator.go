// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"math/big"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

// Header is what a report says of its run.
type Header struct {
	RunID       string
	Group       string
	Matrix      map[string]string // the run's values; nil without a matrix
	Name        string
	Agent       string
	PlanDigest  string
	Repeats     int
	GeneratedBy string
	CreatedAt   time.Time
	Ended       *Ended
	// Meta tells what the pack says of a trial's task. Nil: nothing is known.
	Meta func(bundle.PlanRow) Meta
}

// Trial is a planned trial and what became of it.
type Trial struct {
	Row bundle.PlanRow
	// Commit of the highest committed epoch, nil without one.
	Commit *bundle.Commit
	// Epoch is the current one, from 1.
	Epoch int
	// Problem says why the commit can't be read; Commit is nil then.
	Problem string
}

// Accumulator makes the reports of one run. Add every planned trial once, in plan
// order, so that all trials of a task follow each other; then Finish. It is used by
// one goroutine, and can't be used after an error.
type Accumulator struct {
	head     Header
	keys     bundle.Keys
	spool    Spool
	task     taskSums
	meta     Meta // of the task
	open     bool // a task has begun
	all      *group
	slices   *slicing
	times    Counts
	passing  cluster
	scoring  cluster
	outcomes outcomes
	badExit  *Example
	attempts Attempts
	epochs   Epochs
	commits  int64
	newest   time.Time
	missing  *list[MissingTrial]
	broken   int64
	failures *failures
	captures *captures
	tasks    []Task
	perTask  io.Writer
}

// NewAccumulator begins the reports of a run.
func NewAccumulator(head Header, spool Spool) (*Accumulator, error) {
	perTask, err := spool.Create(PerTaskFile)
	if err != nil {
		return nil, fmt.Errorf("begin %s: %w", PerTaskFile, err)
	}
	return &Accumulator{
		head: head, keys: bundle.Keys{Run: head.RunID}, spool: spool,
		all: newGroup(int64(head.Repeats)), slices: newSlicing(),
		outcomes: newOutcomes(),
		epochs:   Epochs{Newest: 1, RegradedBy: map[string]int64{}},
		missing:  newList[MissingTrial](spool, MissingSidecar),
		failures: newFailures(spool), captures: newCaptures(spool),
		tasks: []Task{}, perTask: perTask,
	}, nil
}

// AddRunCapture adds a capture of service logs that belongs to no trial.
func (a *Accumulator) AddRunCapture(c Capture) error { return a.captures.add(c) }

// Add adds the next trial of the plan.
func (a *Accumulator) Add(t Trial) error {
	if !a.open || t.Row.TaskID != a.task.id {
		if err := a.closeTask(); err != nil {
			return err
		}
		a.task.begin(t.Row.TaskID)
		a.open = true
		a.meta = Meta{}
		if a.head.Meta != nil {
			a.meta = a.head.Meta(t.Row)
		}
	}
	a.task.planned++
	epoch := max(1, t.Epoch)
	if epoch > 1 {
		a.epochs.Reopened++
		a.epochs.Newest = max(a.epochs.Newest, epoch)
	}
	if t.Commit == nil {
		return a.addMissing(t, epoch)
	}
	if t.Commit.Epoch < epoch {
		a.epochs.Open++
	}
	return a.addCommit(t.Commit)
}

func (a *Accumulator) addMissing(t Trial, epoch int) error {
	if t.Problem != "" {
		a.broken++
	}
	row := t.Row
	err := a.missing.add(MissingTrial{row.TaskID, row.TrialIndex, row.TrialID, epoch, t.Problem})
	if err != nil {
		return fmt.Errorf("list missing trials: %w", err)
	}
	return nil
}

func (a *Accumulator) addCommit(c *bundle.Commit) error {
	a.commits++
	a.task.add(c)
	a.times.Add(millis(c.Metrics))
	a.outcomes.add(a.keys, c)
	if how, bad := badExit(c); bad && a.badExit.after(c) {
		a.badExit = exampleOf(a.keys, c, how, agentLog)
	}
	if r := c.Regraded; r != nil {
		a.epochs.Regraded++
		a.epochs.RegradedBy[r.Pack]++
	}
	a.attempts.Total += int64(c.Attempt)
	if c.Attempt > 1 {
		a.attempts.Wasted += int64(c.Attempt) - 1
		a.attempts.RetriedTrials++
	}
	if c.At.After(a.newest) {
		a.newest = c.At
	}
	if capture, ok := captureOf(c); ok {
		if err := a.captures.add(capture); err != nil {
			return err
		}
	}
	return a.failures.add(a.keys, c)
}

func (a *Accumulator) closeTask() error {
	if !a.open {
		return nil
	}
	t := &a.task
	a.all.add(t)
	a.slices.add(t, a.meta)
	a.passing.add(big.NewInt(t.passed), t.scored)
	a.scoring.add(&t.score.sum, t.scored)
	row := t.row(a.meta)
	if len(a.tasks) < MaxListed {
		a.tasks = append(a.tasks, row)
	}
	before := ",\n"
	if a.all.tasks == 1 {
		before = "[\n"
	}
	if _, err := io.WriteString(a.perTask, before); err != nil {
		return fmt.Errorf("write %s: %w", PerTaskFile, err)
	}
	if err := writeLine(a.perTask, row, ""); err != nil {
		return fmt.Errorf("write %s: %w", PerTaskFile, err)
	}
	return nil
}
