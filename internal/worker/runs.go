// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// runCache keeps what the trials of a run share: its record, its environment, opened
// packs, and the parts of the plan that were read last.
type runCache struct {
	w  *Worker
	mu sync.Mutex
	// runs grow with the runs that this process has seen, never with trials.
	runs map[string]*liveRun
}

// liveRun is one run on this worker. Each field is made once, by whoever needs it
// first; a failure is not kept.
type liveRun struct {
	id   string
	w    *Worker
	mu   sync.Mutex // guards the making of everything below
	rec  *manifest.RunRecord
	env  runtime.Environment
	pack map[string]*manifest.Pack
	// parts are the newest few, since jobs come roughly in the plan's order.
	parts []planPart
}

type planPart struct {
	part int
	rows []bundle.PlanRow
}

// keptParts bounds the memory of a run: a part is about a megabyte.
const keptParts = 4

// prepareTimeout bounds Runtime.Prepare: images may have to be pulled or built.
const prepareTimeout = time.Hour

func newRunCache(w *Worker) *runCache { return &runCache{w: w, runs: map[string]*liveRun{}} }

func (c *runCache) get(id string) *liveRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.runs[id]
	if !ok {
		r = &liveRun{id: id, w: c.w, pack: map[string]*manifest.Pack{}}
		c.runs[id] = r
	}
	return r
}

// close gives the environments back.
func (c *runCache) close(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for id, r := range c.runs {
		if r.env != nil {
			if err := r.env.Close(ctx); err != nil {
				errs = append(errs, fmt.Errorf("environment of run %s: %w", id, err))
			}
		}
	}
	clear(c.runs)
	return errors.Join(errs...)
}

// record returns run.yaml.
func (r *liveRun) record(ctx context.Context) (*manifest.RunRecord, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rec == nil {
		rec, err := dispatch.LoadRun(ctx, r.w.Store, r.id)
		if err != nil {
			return nil, err
		}
		r.rec = &rec
	}
	return r.rec, nil
}

// row returns a row of the plan.
func (r *liveRun) row(ctx context.Context, ref bundle.PlanRef) (bundle.PlanRow, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.parts {
		if p.part == ref.Part {
			return p.at(ref)
		}
	}
	rows, err := bundle.ReadPlanPart(ctx, r.w.Store, bundle.Keys{Run: r.id}, ref.Part)
	if err != nil {
		return bundle.PlanRow{}, err
	}
	if len(r.parts) == keptParts {
		r.parts = r.parts[1:]
	}
	p := planPart{part: ref.Part, rows: rows}
	r.parts = append(r.parts, p)
	return p.at(ref)
}

func (p planPart) at(ref bundle.PlanRef) (bundle.PlanRow, error) {
	if ref.Row >= len(p.rows) {
		return bundle.PlanRow{}, fmt.Errorf("plan part %d has %d rows, no row %d", p.part, len(p.rows), ref.Row)
	}
	return p.rows[ref.Row], nil
}

// task returns the task of a row, from its pack.
func (r *liveRun) task(ctx context.Context, row bundle.PlanRow) (*manifest.Task, error) {
	p, err := r.openPack(ctx, row.Pack)
	if err != nil {
		return nil, err
	}
	return p.Task(manifest.TaskRef{ID: row.TaskID, Offset: row.Offset, Length: row.Length, Dir: row.Dir})
}

func (r *liveRun) openPack(ctx context.Context, sha string) (*manifest.Pack, error) {
	r.mu.Lock()
	p, ok := r.pack[sha]
	r.mu.Unlock()
	if ok {
		return p, nil
	}
	dir, err := r.w.packs.Dir(ctx, sha)
	if err != nil {
		return nil, err
	}
	p, err = manifest.OpenPack(dir, manifest.LoadOptions{})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pack[sha] = p
	return p, nil
}

// agentFiles returns the directory of agent.files, and its name in the workdir.
func (r *liveRun) agentFiles(ctx context.Context, rec *manifest.RunRecord) (dir, name string, err error) {
	if rec.AgentFiles == "" {
		return "", "", nil
	}
	dir, err = r.w.packs.Dir(ctx, rec.AgentFiles)
	return dir, filepath.Base(rec.Run.Agent.Files), err
}

// environment prepares the run's runtime, once. Others wait meanwhile: they could do
// nothing without it.
func (r *liveRun) environment(rec *manifest.RunRecord) (runtime.Environment, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.env != nil {
		return r.env, nil
	}
	rt, ok := r.w.Runtimes[rec.Run.Runtime.Type]
	if !ok {
		return nil, fmt.Errorf("this worker has no runtime %s", rec.Run.Runtime.Type)
	}
	// Not the attempt's context: the environment outlives it, and the next attempt
	// would only start anew.
	ctx, cancel := context.WithTimeoutCause(r.w.hardCtx, prepareTimeout,
		fmt.Errorf("preparing runtime %s took longer than %s", rec.Run.Runtime.Type, prepareTimeout))
	defer cancel()
	env, err := rt.Prepare(ctx, trial.RunSpec(rec.Run, r.id, r.w.StoreUUID, r.w.Name))
	if err != nil {
		return nil, err
	}
	r.env = env
	return env, nil
}
