// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/packcache"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
)

// Regrade asks for grading what agents left once more.
type Regrade struct {
	Select Selection
	By     string
	// Packs are corrected versions of packs of the run, by name, or of its only one. A pack
	// that isn't given grades as it did before.
	Packs []*manifest.Pack
	// OnDecided is told what will be enqueued, before it is; may be nil.
	OnDecided func(Reopened)
	// TempDir takes unpacked packs. Defaults to the system's.
	TempDir string
}

// Regrade puts trials back for their graders alone, and enqueues them; see
// [Producer.PutBack]. What can't be graded by what was collected is refused where the
// pack says so, and left out where it is a matter of one trial.
func (p *Producer) Regrade(ctx context.Context, rec manifest.RunRecord, o Regrade) (_ *Reopened, err error) {
	tmp, err := os.MkdirTemp(o.TempDir, "tidemill-regrade-*")
	if err != nil {
		return nil, fmt.Errorf("regrade: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	cache, err := packcache.New(p.Store, filepath.Join(tmp, "packs"), 0)
	if err != nil {
		return nil, err
	}
	defer cache.Close()
	g := &graders{p: p, rec: rec, tmp: tmp, cache: cache, archives: map[string]string{}, byPack: map[string]*grader{}}
	if err := g.replace(ctx, o.Packs); err != nil {
		return nil, err
	}
	return p.PutBack(ctx, rec, PutBack{
		Kind: bundle.ControlRegrade, By: o.By, Select: o.Select, Packs: g.replaced(),
		OnDecided: o.OnDecided, CheckTask: g.checkTask, LeaveOut: g.leaveOut,
		Before: func(ctx context.Context) error { return p.storeArchives(ctx, &Draft{archives: g.archives}) },
	})
}

// graders are the packs of a run with those that grade in their place.
type graders struct {
	p        *Producer
	rec      manifest.RunRecord
	tmp      string
	cache    *packcache.Cache
	archives map[string]string  // of corrected packs, by digest
	byPack   map[string]*grader // by the digest of the plan's pack
	differ   manifest.TaskDiffer
}

// grader is a pack of the plan and the pack that grades its trials: the same one where
// none was given.
type grader struct {
	name        string
	was         string // digest
	sum         string
	given       *manifest.Pack // nil without
	before, now *manifest.Pack // unpacked when the first task is checked
	index       map[string]manifest.TaskRef
}

func (g *graders) replaced() map[string]string {
	packs := map[string]string{}
	for was, gr := range g.byPack {
		if gr.sum != was {
			packs[was] = gr.sum
		}
	}
	return packs
}

// replace finds out which pack each given one stands for, and archives it.
func (g *graders) replace(ctx context.Context, given []*manifest.Pack) error {
	var names []string
	for _, ref := range g.rec.Packs {
		g.byPack[ref.SHA256] = &grader{name: ref.Name, was: ref.SHA256, sum: ref.SHA256}
		names = append(names, ref.Name)
	}
	for _, pack := range given {
		i := slices.Index(names, pack.Name)
		if i < 0 && len(names) == 1 && len(given) == 1 {
			i = 0 // there is nothing else that it could be
		}
		if i < 0 {
			return &RefusedError{
				Text: fmt.Sprintf("pack %s: run %s has no pack of this name; it has %s", pack.Name, g.rec.RunID, strings.Join(names, ", ")),
				Fix:  "a corrected pack has the name of the one that it corrects",
			}
		}
		gr := g.byPack[g.rec.Packs[i].SHA256]
		if gr.given != nil {
			return &RefusedError{Text: fmt.Sprintf("pack %s is given twice", pack.Name)}
		}
		gr.given = pack
		d := Draft{tmp: g.tmp, archives: g.archives}
		sum, err := d.archive(func(w io.Writer) (string, error) { return pack.Archive(ctx, w) })
		if err != nil {
			return fmt.Errorf("pack %s: %w", pack.Dir, err)
		}
		gr.sum = sum
	}
	return nil
}

// open unpacks both packs. The corrected one is read from its archive too, as workers will
// read it.
func (g *graders) open(ctx context.Context, gr *grader) error {
	if gr.before != nil {
		return nil
	}
	held, err := g.cache.Use(ctx, gr.was) // as long as the cache is there
	if err != nil {
		return err
	}
	before, err := manifest.OpenPack(held.Dir, manifest.LoadOptions{})
	if err != nil {
		return err
	}
	gr.before, gr.now = before, before
	if gr.sum == gr.was {
		return nil
	}
	f, err := os.Open(g.archives[gr.sum])
	if err != nil {
		return err
	}
	defer f.Close()
	dir := filepath.Join(g.tmp, "corrected-"+gr.sum)
	if err := manifest.Unpack(ctx, f, gr.sum, dir); err != nil {
		return err
	}
	if gr.now, err = manifest.OpenPack(dir, manifest.LoadOptions{}); err != nil {
		return err
	}
	if gr.index, err = gr.given.Index(ctx); err != nil { // for its messages; offsets are the same
		return err
	}
	return g.checkCollected(gr)
}

// checkCollected refuses a corrected pack that wants files which were not collected.
func (g *graders) checkCollected(gr *grader) error {
	had := append(gr.before.Artifacts(), g.rec.Run.Capture.Artifacts...)
	for _, glob := range gr.now.Artifacts() {
		if !slices.Contains(had, glob) {
			return &RefusedError{
				Text: fmt.Sprintf("pack %s: artifacts: files of %q were not collected in run %s", gr.name, glob, g.rec.RunID),
				Fix:  "a regrade has only what was collected; leave it out if the grader can do without, else run the tasks again",
			}
		}
	}
	return nil
}

// checkTask refuses a task that can't be graded again, or is another one now.
func (g *graders) checkTask(ctx context.Context, row bundle.PlanRow) error {
	gr, ok := g.byPack[row.Pack]
	if !ok {
		return fmt.Errorf("task %.80q is of pack %s, which the run doesn't have", row.TaskID, row.Pack)
	}
	if err := g.open(ctx, gr); err != nil {
		if _, refused := errors.AsType[*RefusedError](err); refused {
			return err
		}
		return fmt.Errorf("pack %s: %w", gr.name, err)
	}
	before, err := gr.before.Task(manifest.TaskRef{ID: row.TaskID, Offset: row.Offset, Length: row.Length, Dir: row.Dir})
	if err != nil {
		return err
	}
	now := before
	if gr.sum != gr.was {
		ref, ok := gr.index[row.TaskID]
		if !ok {
			return &RefusedError{
				Text: fmt.Sprintf("pack %s has no task %q any more, and trials of it are to be graded", gr.name, row.TaskID),
				Fix:  "give the task back its id, or select others with --task",
			}
		}
		if now, err = gr.now.Task(ref); err != nil {
			return err
		}
		parts, err := g.differ.ForAgent(ctx, before, now)
		if err != nil {
			return fmt.Errorf("pack %s: %w", gr.name, err)
		}
		if len(parts) > 0 {
			return &RefusedError{
				Text: fmt.Sprintf("pack %s: task %q is another one for the agent now (%s); only what the grader sees may differ",
					gr.name, row.TaskID, strings.Join(parts, ", ")),
				Fix: "run the tasks again, or take these changes back",
			}
		}
	}
	why, fix := trial.TaskRegradable(&g.rec.Run, now)
	if why == "" {
		return nil
	}
	if gr.given == nil && now.Regrade == "" {
		fix += ", and give the pack with --pack DIR"
	}
	return &RefusedError{Text: fmt.Sprintf("pack %s: task %q can't be graded again: %s", gr.name, row.TaskID, why), Fix: fix}
}

// leaveOut looks at what the agent's attempt left.
func (g *graders) leaveOut(ctx context.Context, row bundle.PlanRow, shown *bundle.Commit) (string, error) {
	keys := bundle.Keys{Run: g.rec.RunID}
	c, err := dispatch.AgentsCommit(ctx, g.p.Store, keys, shown)
	if err != nil {
		return "", err
	}
	why := trial.OutcomeRegradable(c.Outcome)
	if why == "" {
		why, err = g.lookAtFiles(ctx, keys.AttemptFiles(row.TaskID, row.TrialIndex, c.Attempt))
	}
	if why != "" && len(why) > maxWhy {
		why = why[:maxWhy] + "…"
	}
	return why, err
}

// maxWhy bounds a reason, which may name a file.
const maxWhy = 200

func (g *graders) lookAtFiles(ctx context.Context, prefix string) (string, error) {
	list, err := bundle.ReadObject(ctx, g.p.Store, prefix+trial.ArtifactsFile, maxList)
	if errors.Is(err, bundle.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if len(g.rec.Run.Agent.Secrets)+len(g.rec.Run.TaskSecrets) == 0 {
		return trial.FilesRegradable(list, nil), nil
	}
	index, err := bundle.ReadIndex(ctx, g.p.Store, prefix)
	if err != nil {
		return "", err
	}
	return trial.FilesRegradable(list, &index), nil
}

// maxList bounds artifacts.json, in bytes.
const maxList = 16 << 20
