// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// Queue is what a producer needs of a queue.
type Queue interface {
	queue.Runs
	queue.Publisher
}

// Producer submits drafts to one store and one queue.
type Producer struct {
	Store     bundle.Store
	StoreUUID string
	Queue     Queue
	Log       zerolog.Logger
	// Version of the program, for run.yaml.
	Version string
	// Pool, where it is set, takes the place of the pool that a run names: on one machine
	// one worker serves them all.
	Pool string
	// OnProgress is told after each part of the plan; may be nil.
	OnProgress func(Progress)
}

// Progress of a submission, in trials.
type Progress struct {
	Total     int
	Planned   int // rows of the plan that are in the store
	Committed int // found to be done already
	Enqueued  int
}

// Options of a submission.
type Options struct {
	// RunID is the id to use. An id that exists continues, if its plan is the same.
	RunID string
	// Group ties the runs of a matrix together.
	Group string
}

// Submission is a run in the store, with its open trials enqueued.
type Submission struct {
	Record manifest.RunRecord
	// Continued: the run was there before.
	Continued bool
	Progress
}

// PlanConflictError says that a run id is taken by a run with another plan.
type PlanConflictError struct {
	RunID string
	Keys  []string // what differs, in words
}

func (e *PlanConflictError) Error() string {
	return fmt.Sprintf("run %s exists with another plan (%s); choose another run id or restore the file",
		e.RunID, strings.Join(e.Keys, "; "))
}

// ErrTasksChanged: the tasks are not what they were when the run was drafted.
var ErrTasksChanged = errors.New("the tasks changed while the run was being submitted; try again")

// Submit writes the run and enqueues every trial that has no commit yet. It may be
// repeated.
func (p *Producer) Submit(ctx context.Context, d *Draft, o Options) (*Submission, error) {
	sub := &Submission{Progress: Progress{Total: d.Plan.Trials}}
	var err error
	if sub.Record, sub.Continued, err = p.claim(ctx, d, o); err != nil {
		return nil, err
	}
	if err := p.storeArchives(ctx, d); err != nil {
		return nil, err
	}
	qrun, err := dispatch.QueueRun(sub.Record)
	if err != nil {
		return nil, err
	}
	qrun.Pool = cmp.Or(p.Pool, qrun.Pool)
	if err := p.Queue.OpenRun(ctx, qrun); err != nil {
		return nil, fmt.Errorf("open run %s: %w", sub.Record.RunID, err)
	}
	if err := p.plan(ctx, d, sub); err != nil {
		return nil, err
	}
	return sub, nil
}

// claim takes the run id, or finds that the same run has it.
func (p *Producer) claim(ctx context.Context, d *Draft, o Options) (manifest.RunRecord, bool, error) {
	now := time.Now().UTC()
	id := o.RunID
	if id == "" {
		id = NewRunID(d.Run.Name, now)
	}
	rec := manifest.RunRecord{
		SchemaVersion: bundle.SchemaVersion, RunID: id, Group: o.Group, CreatedAt: now.Truncate(time.Millisecond),
		Producer: p.Version, Plan: d.Plan, Packs: d.Packs, AgentFiles: d.AgentFiles, Run: *d.Run,
	}
	if _, err := dispatch.QueueRun(rec); err != nil {
		return rec, false, err // names what is wrong before the id is taken
	}
	body, err := dispatch.EncodeRun(rec)
	if err != nil {
		return rec, false, err
	}
	_, err = p.Store.Create(ctx, bundle.Keys{Run: id}.RunFile(), body)
	if err == nil {
		return rec, false, nil
	}
	if !errors.Is(err, bundle.ErrExists) {
		return rec, false, fmt.Errorf("run %s: %w", id, err)
	}
	old, err := dispatch.LoadRun(ctx, p.Store, id)
	if err != nil {
		return rec, false, err
	}
	if old.Plan.Digest != rec.Plan.Digest {
		return rec, false, &PlanConflictError{RunID: id, Keys: manifest.DiffRuns(old, rec)}
	}
	return old, true, nil
}

// NewRunID returns the default id of a run: <name>-<UTC time>, in at most 63 characters.
func NewRunID(name string, at time.Time) string {
	stamp := "-" + at.UTC().Format("20060102-150405")
	if room := 63 - len(stamp); len(name) > room {
		name = name[:room]
	}
	return name + stamp
}

// NewGroupID returns the id that ties runs together. It leaves room for "-<n>", which
// makes it the id of one of them.
func NewGroupID(name string, at time.Time) string {
	const room = 63 - len("-20060102-150405") - len("-1000")
	return NewRunID(name[:min(len(name), room)], at)
}

// storeArchives puts packs and agent files that the store doesn't have.
func (p *Producer) storeArchives(ctx context.Context, d *Draft) error {
	for sha, file := range d.archives {
		key := bundle.PackKey(sha)
		if r, err := p.Store.GetRange(ctx, key, 0, 0); err == nil {
			r.Close()
			continue
		} else if !errors.Is(err, bundle.ErrNotFound) {
			return fmt.Errorf("pack %s: %w", sha, err)
		}
		if err := p.putFile(ctx, key, file); err != nil {
			return fmt.Errorf("pack %s: %w", sha, err)
		}
	}
	return nil
}

func (p *Producer) putFile(ctx context.Context, key, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return p.Store.Put(ctx, key, f, info.Size())
}

// plan writes the parts of the plan and enqueues their trials, part by part.
func (p *Producer) plan(ctx context.Context, d *Draft, sub *Submission) error {
	rec := sub.Record
	keys := bundle.Keys{Run: rec.RunID}
	digest := manifest.NewDigest(d.Run, d.Packs, d.AgentFiles)
	parts := bundle.NewPlanWriter(bundle.PlanLimits{}, func(part int, body []byte, rows []bundle.PlanRow) error {
		if _, err := p.Store.Create(ctx, keys.PlanPart(part), body); err != nil && !errors.Is(err, bundle.ErrExists) {
			return fmt.Errorf("run %s: plan part %d: %w", rec.RunID, part, err)
		}
		if err := p.enqueue(ctx, sub, part, rows); err != nil {
			return err
		}
		if p.OnProgress != nil {
			p.OnProgress(sub.Progress)
		}
		return nil
	})
	id := func(task string, index int) string { return bundle.TrialID(p.StoreUUID, rec.RunID, task, index) }
	if _, err := d.walk(ctx, digest, id, func(row bundle.PlanRow) error {
		_, err := parts.Add(row)
		return err
	}); err != nil {
		return err
	}
	if _, err := parts.Finish(); err != nil {
		return err
	}
	if digest.Sum() != rec.Plan.Digest {
		return fmt.Errorf("run %s: %w", rec.RunID, ErrTasksChanged)
	}
	return nil
}

// commitLookups is how many commits are looked up at once.
const commitLookups = 16

// enqueue publishes the rows of a part that are not done.
func (p *Producer) enqueue(ctx context.Context, sub *Submission, part int, rows []bundle.PlanRow) error {
	done := make([]bool, len(rows))
	if sub.Continued {
		if err := p.findDone(ctx, sub.Record.RunID, rows, done); err != nil {
			return err
		}
	}
	jobs := make([]queue.Job, 0, len(rows))
	for i, row := range rows {
		sub.Planned++
		if done[i] {
			sub.Committed++
			continue
		}
		jobs = append(jobs, queue.Job{
			ID:  queue.ID{Trial: row.TrialID, Epoch: 1, Release: 1},
			Run: sub.Record.RunID, Body: dispatch.Body(bundle.PlanRef{Part: part, Row: i}),
		})
	}
	if len(jobs) == 0 {
		return nil
	}
	got, err := p.Queue.Publish(ctx, sub.Record.RunID, jobs)
	if err != nil {
		return fmt.Errorf("enqueue run %s: %w", sub.Record.RunID, err)
	}
	sub.Enqueued += got.Stored
	p.Log.Debug().Str("run_id", sub.Record.RunID).Int("part", part).
		Int("stored", got.Stored).Int("skipped", got.Skipped).Msg("plan part enqueued")
	return nil
}

func (p *Producer) findDone(ctx context.Context, run string, rows []bundle.PlanRow, done []bool) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(commitLookups)
	for i, row := range rows {
		g.Go(func() error {
			c, err := bundle.FindCommit(ctx, p.Store, bundle.Keys{Run: run}, row.TrialID, 1)
			done[i] = c != nil
			return err
		})
	}
	return g.Wait()
}
