// SPDX-License-Identifier: Apache-2.0

package showcmd

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/fleet"
	"github.com/tidemill/tidemill/cmd/internal/live"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/trials"
)

// description is a trial in detail.
type description struct {
	RunID      string            `json:"run_id"`
	TaskID     string            `json:"task_id"`
	TrialIndex int               `json:"trial_index"`
	TrialID    string            `json:"trial_id"`
	State      string            `json:"state"`
	Epoch      int               `json:"epoch"` // the current one
	Commit     *bundle.Commit    `json:"commit"`
	Running    *progress.Running `json:"running"`
	// Worker of a fleet that runs it now; absent where one process is all there is.
	Worker   string    `json:"worker,omitempty"`
	Attempts []attempt `json:"attempts"`
	// Files are those of one attempt.
	Files files `json:"files"`
}

// attempt is one of the trial's.
type attempt struct {
	Attempt  int             `json:"attempt"`
	Epoch    int             `json:"epoch"`
	Worker   string          `json:"worker"`
	Began    time.Time       `json:"began_at"`
	Ended    *time.Time      `json:"ended_at"`
	Counts   bool            `json:"counts"`  // it was committed
	Running  bool            `json:"running"` // as far as a process here says, or the fleet
	Charged  bool            `json:"charged"`
	Outcome  *bundle.Outcome `json:"outcome"`
	Why      string          `json:"why,omitempty"`
	Replaced bool            `json:"superseded,omitempty"`
}

type files struct {
	Attempt int    `json:"attempt"`
	Path    string `json:"path"` // a directory, or a URL
	List    []file `json:"list"`
}

type file struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

func (o options) gather(ctx context.Context, store bundle.Store, t trials.Trial, stderr io.Writer) (*description, error) {
	d := &description{
		RunID: t.Run, TaskID: t.Row.TaskID, TrialIndex: t.Row.TrialIndex, TrialID: t.Row.TrialID,
		State: string(t.State()), Epoch: t.Epoch, Commit: t.Commit, Attempts: []attempt{},
	}
	if err := o.findRunning(ctx, store, d, stderr); err != nil {
		return nil, err
	}
	keys := bundle.Keys{Run: t.Run}
	all, err := bundle.ListAttempts(ctx, store, keys, t.Row.TrialID)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		d.Attempts = append(d.Attempts, d.attempt(a))
	}
	number := cmp.Or(o.attempt, t.Counted())
	if err := trials.CheckAttempt(ctx, store, t, o.attempt); err != nil {
		return nil, err
	}
	if number == 0 {
		d.Files.List = []file{}
		return d, nil
	}
	prefix := keys.AttemptFiles(t.Row.TaskID, t.Row.TrialIndex, number)
	d.Files = files{Attempt: number, Path: stores.Join(store.URL(), strings.TrimSuffix(prefix, "/")), List: []file{}}
	for info, err := range store.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		d.Files.List = append(d.Files.List, file{strings.TrimPrefix(info.Key, prefix), info.Size})
	}
	slices.SortFunc(d.Files.List, func(a, b file) int { return cmp.Compare(a.Path, b.Path) })
	return d, nil
}

// findRunning finds out whether the trial runs: here, or else somewhere in the fleet.
func (o options) findRunning(ctx context.Context, store bundle.Store, d *description, stderr io.Writer) error {
	snapshot, err := live.Snapshot(ctx, o.store.Where())
	if err != nil {
		return err
	}
	if snapshot != nil {
		if i := slices.IndexFunc(snapshot.Running, func(r progress.Running) bool { return r.TrialID == d.TrialID }); i >= 0 {
			d.Running, d.State = &snapshot.Running[i], "running"
		}
		return nil
	}
	places, err := fleet.Running(ctx, store, &o.queue, stderr)
	at, ok := places[d.TrialID]
	if d.Commit != nil && d.Commit.Attempt >= at.Attempt {
		return err // it has ended since its worker told of it
	}
	if ok {
		running := progress.Running(at.Running)
		d.Running, d.State, d.Worker = &running, "running", at.Worker
	}
	return err
}

func (d *description) attempt(a bundle.Attempt) attempt {
	out := attempt{
		Attempt: a.Claim.Attempt, Epoch: a.Claim.Epoch, Worker: a.Claim.Worker, Began: a.Claim.At,
		Counts:  d.Commit != nil && d.Commit.Attempt == a.Claim.Attempt,
		Running: d.Running != nil && d.Running.Attempt == a.Claim.Attempt,
	}
	if a.End != nil {
		out.Ended, out.Charged, out.Outcome = &a.End.At, a.End.Charged, &a.End.Outcome
		out.Why, out.Replaced = a.End.Why, a.End.Superseded
	}
	return out
}
