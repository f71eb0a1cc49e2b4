// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// PutBack is a decision to do trials again, in a new epoch.
type PutBack struct {
	// Kind is [bundle.ControlRetry] or [bundle.ControlRegrade].
	Kind string
	// By says who decided it.
	By     string
	Select Selection
	// Packs, of a regrade, are those in whose place another one grades: its sha256 by
	// that of the plan's.
	Packs map[string]string
	// CheckTask is asked for each task that is selected, in plan order; an error refuses
	// it all. May be nil.
	CheckTask func(ctx context.Context, row bundle.PlanRow) error
	// LeaveOut says why a trial can't be put back, "" when it can, by the commit that is
	// shown for it. It is called from several goroutines; may be nil.
	LeaveOut func(ctx context.Context, row bundle.PlanRow, shown *bundle.Commit) (string, error)
	// Before is called when all is checked and before anything is written; may be nil.
	Before func(ctx context.Context) error
	// OnDecided is told what will be enqueued, before it is; may be nil.
	OnDecided func(Reopened)
}

// Reopened is what came of a [PutBack].
type Reopened struct {
	// Control is the decision.
	Control bundle.Control
	// Continued: it was there before, and not all of its trials are done.
	Continued bool
	// Trials are those of the decision that are open, of so many tasks once they are
	// enqueued.
	Trials   int
	Tasks    int
	Enqueued int
	// LeftOut counts selected trials that were not put back, by why.
	LeftOut map[string]int
	// TakenOver counts those of Trials that an earlier decision had put back and that were
	// not done yet, by its kind.
	TakenOver map[string]int
}

// NothingSelectedError says that a selection has no trial that can be put back.
type NothingSelectedError struct {
	RunID   string
	Kind    string
	LeftOut map[string]int // selected trials, by why
	Select  Selection
}

func (e *NothingSelectedError) Error() string {
	text := fmt.Sprintf("run %s has no trial to %s", e.RunID, e.Kind)
	if len(e.LeftOut) == 0 {
		return strings.TrimSpace(text + " in this selection " + strings.Join(e.Select.flags(), " "))
	}
	return text + ": " + Reasons(e.LeftOut)
}

// PutBack opens the next epoch of trials and enqueues them. The decision is written
// first, so that whoever comes after a crash goes on with it: the same decision, given
// again while trials of it are open, goes on with those and puts back no others.
//
// An epoch opens only after the commit of the one before. A trial whose current epoch is
// open because of an earlier decision is decided anew, in that epoch.
//
// Where it was decided and the queue could not be told, that comes beside the error.
func (p *Producer) PutBack(ctx context.Context, rec manifest.RunRecord, o PutBack) (*Reopened, error) {
	w := &puttingBack{Producer: p, PutBack: o, rec: rec, keys: bundle.Keys{Run: rec.RunID}, leftOut: map[string]int{}, takenOver: map[string]int{}}
	re, err := w.decide(ctx)
	if err == nil {
		re.LeftOut, re.Trials, re.TakenOver = w.leftOut, len(w.targets), w.takenOver
		if w.OnDecided != nil {
			w.OnDecided(*re)
		}
		if p.Queue == nil {
			return re, nil
		}
		err = p.openRun(ctx, rec)
	}
	if err == nil {
		re.Enqueued, re.Tasks, err = w.enqueue(ctx)
	}
	if err != nil {
		_, nothing := errors.AsType[*NothingSelectedError](err)
		_, refused := errors.AsType[*RefusedError](err)
		if nothing || refused {
			return nil, err // they name the run
		}
		return re, fmt.Errorf("run %s: %w", rec.RunID, err)
	}
	return re, nil
}

// puttingBack is a PutBack at work.
type puttingBack struct {
	*Producer
	PutBack
	rec     manifest.RunRecord
	keys    bundle.Keys
	records []bundle.Control
	epochs  bundle.Epochs

	mu      sync.Mutex
	targets bundle.Epochs // the trials to do, with their epoch
	leftOut map[string]int
	// takenOver are the targets that were open, by what had put them back.
	takenOver map[string]int
}

// errDecided: somebody else put trials of the run back meanwhile.
var errDecided = errors.New("somebody else decided something about the run meanwhile; try again")

// decide finds the decision to go on with, or makes one.
func (w *puttingBack) decide(ctx context.Context) (*Reopened, error) {
	var err error
	if w.records, err = bundle.ReadControl(ctx, w.Store, w.keys); err != nil {
		return nil, err
	}
	if w.epochs, err = bundle.CurrentEpochs(w.records); err != nil {
		return nil, err
	}
	now, err := bundle.FoldControl(w.records)
	if err != nil {
		return nil, err
	}
	if now.Ended != nil {
		refused := Ended(w.rec.RunID, now.Ended)
		refused.Fix += "; then give this command again"
		return nil, refused
	}
	for i := len(w.records) - 1; i >= 0; i-- {
		c := w.records[i]
		if !dispatch.SameSelection(c, w.Kind, w.Select.words()) || !dispatch.SamePacks(c, w.Packs) {
			continue
		}
		if err := w.findOpen(ctx, c); err != nil {
			return nil, err
		}
		if len(w.targets) > 0 {
			return &Reopened{Control: c, Continued: true}, nil
		}
		break // earlier ones were done when this one was made
	}
	if err := w.choose(ctx); err != nil {
		return nil, err
	}
	if len(w.targets) == 0 {
		return nil, &NothingSelectedError{RunID: w.rec.RunID, Kind: w.Kind, LeftOut: w.leftOut, Select: w.Select}
	}
	if w.Before != nil {
		if err := w.Before(ctx); err != nil {
			return nil, err
		}
	}
	c, err := bundle.AppendControl(ctx, w.Store, w.keys, func(before []bundle.Control) (bundle.Control, error) {
		for _, c := range before[len(w.records):] {
			if len(c.Epochs) > 0 || c.Kind == bundle.ControlCancel || c.Kind == bundle.ControlStop {
				return bundle.Control{}, errDecided
			}
		}
		return bundle.Control{
			Kind: w.Kind, By: w.By, Epochs: w.targets, Args: dispatch.RegradeArgs(w.Packs, w.Select.words()),
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return &Reopened{Control: c}, nil
}

// findOpen makes the trials of a decision the targets that are still open because of it.
func (w *puttingBack) findOpen(ctx context.Context, c bundle.Control) error {
	w.targets = bundle.Epochs{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(commitLookups)
	for trial, epoch := range c.Epochs {
		if by := bundle.OpenedBy(w.records, trial, epoch); epoch != w.epochs.Of(trial) || by == nil || by.Rev != c.Rev {
			continue
		}
		g.Go(func() error {
			done, err := bundle.FindCommit(ctx, w.Store, w.keys, trial, epoch)
			if err == nil && done == nil {
				w.target(trial, epoch)
			}
			return err
		})
	}
	return g.Wait()
}

func (w *puttingBack) target(trial string, epoch int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.targets[trial] = epoch
}

func (w *puttingBack) leave(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leftOut[why]++
}

// choose makes the selected trials targets.
func (w *puttingBack) choose(ctx context.Context) error {
	w.targets = bundle.Epochs{}
	named, err := w.Select.trials()
	if err != nil {
		return err
	}
	task := ""
	err = w.rows(ctx, func(ctx context.Context, part int, rows []bundle.PlanRow) error {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(commitLookups)
		for _, row := range rows {
			if !w.Select.matches(row, named) {
				continue
			}
			if w.CheckTask != nil && row.TaskID != task {
				if err := w.CheckTask(ctx, row); err != nil {
					return errors.Join(err, g.Wait())
				}
			}
			task = row.TaskID
			g.Go(func() error { return w.consider(gctx, row) })
		}
		return g.Wait()
	})
	if err != nil {
		return err
	}
	return named.missed(w.rec.RunID)
}

// consider makes a trial a target, or leaves it out.
func (w *puttingBack) consider(ctx context.Context, row bundle.PlanRow) error {
	epoch := w.epochs.Of(row.TrialID)
	shown, err := bundle.FindCommit(ctx, w.Store, w.keys, row.TrialID, epoch)
	if err != nil {
		return err
	}
	next, open := epoch+1, false
	if shown == nil && epoch > 1 {
		next, open = epoch, true // decided anew
		if shown, err = bundle.FindCommit(ctx, w.Store, w.keys, row.TrialID, epoch-1); err != nil {
			return err
		}
	}
	if shown == nil {
		w.leave("not done yet")
		return nil
	}
	if !w.Select.Which.matches(shown) || !w.Select.ofClass(shown) {
		return nil
	}
	if w.LeaveOut != nil {
		why, err := w.LeaveOut(ctx, row, shown)
		if err != nil {
			return fmt.Errorf("trial %s of task %.80q: %w", row.TrialID, row.TaskID, err)
		}
		if why != "" {
			w.leave(why)
			return nil
		}
	}
	w.target(row.TrialID, next)
	if open {
		w.takeOver(row.TrialID, epoch)
	}
	return nil
}

func (w *puttingBack) takeOver(trial string, epoch int) {
	by := bundle.OpenedBy(w.records, trial, epoch)
	if by == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.takenOver[by.Kind]++
}

// rows reads the plan, part by part.
func (w *puttingBack) rows(ctx context.Context, each func(ctx context.Context, part int, rows []bundle.PlanRow) error) error {
	for part := range w.rec.Plan.Parts {
		rows, err := bundle.ReadPlanPart(ctx, w.Store, w.keys, part)
		if err != nil {
			return err
		}
		if err := each(ctx, part, rows); err != nil {
			return err
		}
	}
	return nil
}

// enqueue publishes the targets.
func (w *puttingBack) enqueue(ctx context.Context) (stored, tasks int, err error) {
	release, task := laterRelease(), ""
	err = w.rows(ctx, func(ctx context.Context, part int, rows []bundle.PlanRow) error {
		var jobs []queue.Job
		for i, row := range rows {
			if epoch, ok := w.targets[row.TrialID]; ok {
				if tasks == 0 || row.TaskID != task {
					task = row.TaskID
					tasks++
				}
				jobs = append(jobs, queue.Job{
					ID:  queue.ID{Trial: row.TrialID, Epoch: epoch, Release: release},
					Run: w.rec.RunID, Body: dispatch.Body(bundle.PlanRef{Part: part, Row: i}),
				})
			}
		}
		if len(jobs) == 0 {
			return nil
		}
		got, err := w.publish(ctx, w.rec, jobs)
		stored += got.Stored
		return err
	})
	if err != nil {
		err = fmt.Errorf("enqueue: %w", err)
	}
	return stored, tasks, err
}

// Reasons puts why trials were left out into a line, the most frequent first.
func Reasons(leftOut map[string]int) string {
	type reason struct {
		why string
		n   int
	}
	var list []reason
	for why, n := range leftOut {
		list = append(list, reason{why, n})
	}
	slices.SortFunc(list, func(a, b reason) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.why, b.why)) })
	var parts []string
	for i, r := range list {
		if i == maxReasons {
			parts = append(parts, fmt.Sprintf("%d other reasons", len(list)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%d %s", r.n, r.why))
	}
	return strings.Join(parts, "; ")
}

// maxReasons is how many reasons are named.
const maxReasons = 5
