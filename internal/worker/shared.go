// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/flight"
	"github.com/tidemill/tidemill/internal/packcache"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// shared is what trials have in common: records and environments of runs, packs, and
// the parts of plans that were read last. Each is made once, by whoever needs it first.
// It grows with the runs that this process has seen, never with trials.
type shared struct {
	w       *Worker
	files   *packcache.Cache
	records *flight.Group[string, *manifest.RunRecord]
	envs    *flight.Group[string, runtime.Environment]
	packs   *flight.Group[string, *manifest.Pack]
	parts   *flight.Group[planPart, []bundle.PlanRow]
	control *flight.Group[string, []bundle.Control]
	refs    *flight.Group[string, map[string]manifest.TaskRef] // of packs that grade other packs' trials

	mu     sync.Mutex
	recent []planPart // those that are kept, the last one used at the end
}

type planPart struct {
	run  string
	part int
}

const (
	// keptParts bounds memory: a part is about a megabyte. Jobs come roughly in the
	// plan's order.
	keptParts = 8
	// prepareTimeout bounds Runtime.Prepare: images may have to be pulled or built.
	prepareTimeout = time.Hour
	// fetchTimeout bounds how long one try to fetch a pack may take.
	fetchTimeout = time.Hour
)

func newShared(w *Worker) (*shared, error) {
	files, err := packcache.New(w.Store, filepath.Join(w.Dir, "packs"), w.PackCache)
	if err != nil {
		return nil, err
	}
	return &shared{
		w: w, files: files,
		records: flight.New[string, *manifest.RunRecord](w.hardCtx),
		envs:    flight.New[string, runtime.Environment](w.hardCtx),
		packs:   flight.New[string, *manifest.Pack](w.hardCtx),
		parts:   flight.New[planPart, []bundle.PlanRow](w.hardCtx),
		control: flight.New[string, []bundle.Control](w.hardCtx),
		refs:    flight.New[string, map[string]manifest.TaskRef](w.hardCtx),
	}, nil
}

// close gives the environments back.
func (s *shared) close(ctx context.Context) error {
	s.records.Close()
	s.packs.Close()
	s.parts.Close()
	s.control.Close()
	s.refs.Close()
	s.files.Close()
	var errs []error
	for run, env := range s.envs.Close() {
		if err := flight.Safely(func() error { return env.Close(ctx) }); err != nil {
			errs = append(errs, fmt.Errorf("environment of run %s: %w", run, err))
		}
	}
	return errors.Join(errs...)
}

// record returns run.yaml.
func (s *shared) record(ctx context.Context, run string) (*manifest.RunRecord, error) {
	return s.records.Get(ctx, run, func(ctx context.Context) (*manifest.RunRecord, error) {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		rec, err := dispatch.LoadRun(ctx, s.w.Store, run)
		return &rec, err
	})
}

// row returns a row of the plan. One that can't be there makes no sense to ask for again.
func (s *shared) row(ctx context.Context, run string, ref bundle.PlanRef) (bundle.PlanRow, error) {
	key := planPart{run, ref.Part}
	rows, err := s.parts.Get(ctx, key, func(ctx context.Context) ([]bundle.PlanRow, error) {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		return bundle.ReadPlanPart(ctx, s.w.Store, bundle.Keys{Run: run}, ref.Part)
	})
	if errors.Is(err, bundle.ErrNotFound) {
		err = permanent{err}
	}
	if err != nil {
		return bundle.PlanRow{}, err
	}
	s.used(key)
	if ref.Row >= len(rows) {
		return bundle.PlanRow{}, permanent{fmt.Errorf("plan part %d has %d rows, no row %d", ref.Part, len(rows), ref.Row)}
	}
	return rows[ref.Row], nil
}

// used keeps a part, and lets go of the one that was not used for longest.
func (s *shared) used(key planPart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.recent, key); i >= 0 {
		s.recent = slices.Delete(s.recent, i, i+1)
	}
	s.recent = append(s.recent, key)
	if len(s.recent) > keptParts {
		s.parts.Forget(s.recent[0])
		s.recent = slices.Delete(s.recent, 0, 1)
	}
}

// task returns the task of a row, from its pack.
func (s *shared) task(ctx context.Context, row bundle.PlanRow, hold holder) (*manifest.Task, error) {
	pack, err := s.pack(ctx, row.Pack, hold)
	if err != nil {
		return nil, err
	}
	return pack.Task(refOf(row))
}

func refOf(row bundle.PlanRow) manifest.TaskRef {
	return manifest.TaskRef{ID: row.TaskID, Offset: row.Offset, Length: row.Length, Dir: row.Dir}
}

// holder is told of a pack that is used, by what gives it back.
type holder func(release func())

func (wk *work) holdPack(release func()) { wk.packs = append(wk.packs, release) }

// pack returns a pack whose files stay until it is given back.
func (s *shared) pack(ctx context.Context, sha256 string, hold holder) (*manifest.Pack, error) {
	dir, err := s.dir(ctx, sha256, hold)
	if err != nil {
		return nil, err
	}
	// What was opened is good for the same files in the same place, whenever they come back.
	return s.packs.Get(ctx, sha256, func(context.Context) (*manifest.Pack, error) {
		return manifest.OpenPack(dir, manifest.LoadOptions{})
	})
}

// agentFiles returns the directory of agent.files, and its name in the workdir.
func (s *shared) agentFiles(ctx context.Context, rec *manifest.RunRecord, hold holder) (dir, name string, err error) {
	if rec.AgentFiles == "" {
		return "", "", nil
	}
	dir, err = s.dir(ctx, rec.AgentFiles, hold)
	return dir, filepath.Base(rec.Run.Agent.Files), err
}

// dir fetches an archive. A store that is away for a while costs no attempt.
func (s *shared) dir(ctx context.Context, sha256 string, hold holder) (string, error) {
	var held packcache.Held
	err := s.w.again(ctx, s.w.StoreRetry+fetchTimeout, func(ctx context.Context) (err error) {
		held, err = s.files.Use(ctx, sha256)
		return err
	})
	if err != nil {
		return "", err
	}
	hold(held.Release)
	return held.Dir, nil
}

// environment prepares the run's runtime. It is not done for one attempt: the
// environment outlives it, and the next attempt would only start anew.
func (s *shared) environment(ctx context.Context, rec *manifest.RunRecord) (runtime.Environment, error) {
	kind := rec.Run.Runtime.Type
	rt, ok := s.w.Runtimes[kind]
	if !ok {
		return nil, fmt.Errorf("this worker has no runtime %s", kind)
	}
	return s.envs.Get(ctx, rec.RunID, func(ctx context.Context) (runtime.Environment, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, prepareTimeout,
			fmt.Errorf("preparing runtime %s took longer than %s", kind, prepareTimeout))
		defer cancel()
		return rt.Prepare(ctx, trial.RecordSpec(rec, s.w.StoreUUID, s.w.Name))
	})
}
