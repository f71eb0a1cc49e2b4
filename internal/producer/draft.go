// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
)

// Draft is a run that was read and checked, and not yet submitted. Close it.
type Draft struct {
	Run        *manifest.Run
	Packs      []manifest.PackRef
	AgentFiles string // digest, empty without
	Plan       manifest.Plan
	// Asks, Demands and Warnings are what the selected tasks say themselves.
	Asks     manifest.Asks
	Demands  []Demand
	Warnings manifest.Problems

	packs    []*manifest.Pack
	archives map[string]string // file of each digest
	parts    []partSum
	byID     *taskIDs // while the tasks are read for the first time
	seen     *seenTasks
	tmp      string
	opts     manifest.LoadOptions
}

// NewDraft opens the packs of a run, reads every task once and packs the files. tmp is
// a directory for the archives; "" is the system's. checks are asked about the selected
// tasks: each of a pack whose tasks differ in what they need, and one of any other pack.
func NewDraft(ctx context.Context, run *manifest.Run, opts manifest.LoadOptions, tmp string, checks ...TaskCheck) (_ *Draft, err error) {
	d := &Draft{seen: newSeenTasks(run, checks), Run: run, archives: map[string]string{}, opts: run.PackOptions(opts)}
	if d.tmp, err = os.MkdirTemp(tmp, "tidemill-draft-*"); err != nil {
		return nil, fmt.Errorf("draft: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if err := d.pack(ctx); err != nil {
		return nil, err
	}
	if err := d.plan(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// plan makes the whole plan once without keeping it: what counts are its digest and
// the sum of each part, by which the second pass knows that nothing changed.
func (d *Draft) plan(ctx context.Context) (err error) {
	digest := manifest.NewDigest(d.Run, d.Packs, d.AgentFiles)
	parts := bundle.NewPlanWriter(bundle.PlanLimits{}, func(_ int, _ []byte, rows []bundle.PlanRow) error {
		sum, err := sumPart(rows)
		d.parts = append(d.parts, sum)
		return err
	})
	ids := newIDs(d.Run.Packs)
	defer func() { err = errors.Join(err, ids.set.Close()) }()
	// A trial id has the same length whatever the run is called, so parts come out alike.
	placeholder := func(int) string { return strings.Repeat("0", 32) }
	d.byID = newTaskIDs(d.Run.Select)
	tasks, err := d.walk(ctx, func(pack int, ref manifest.TaskRef) error {
		if err := ids.add(pack, ref.ID); err != nil {
			return err
		}
		if err := d.seen.look(d.packs[pack], ref); err != nil {
			return err
		}
		digest.Add(ref.ID)
		d.Packs[pack].Tasks++
		return d.rows(parts, pack, ref, placeholder)
	})
	if err != nil {
		return err
	}
	if err := ids.finish(); err != nil {
		return err
	}
	if err := d.byID.missing(ctx, d.Run.File, d.packs); err != nil {
		return err
	}
	if err := d.seen.finish(d); err != nil {
		return err
	}
	d.byID, d.seen = nil, nil
	if tasks == 0 {
		return fmt.Errorf("%s: no task is selected; check select.tasks and select.exclude against the ids in %s",
			d.Run.File, baseNames(d.Run.Packs))
	}
	totals, err := parts.Finish()
	if err != nil {
		return err
	}
	d.Plan = manifest.Plan{Digest: digest.Sum(), Tasks: tasks, Trials: totals.Rows, Parts: totals.Parts}
	return nil
}

// Close removes the archives.
func (d *Draft) Close() error {
	return os.RemoveAll(d.tmp)
}

// pack makes the archives of packs and agent files.
func (d *Draft) pack(ctx context.Context) error {
	for _, dir := range d.Run.Packs {
		p, err := manifest.OpenPack(dir, d.opts)
		if err != nil {
			return err
		}
		d.packs = append(d.packs, p)
		sha, err := d.archive(func(w io.Writer) (string, error) { return p.Archive(ctx, w) })
		if err != nil {
			return fmt.Errorf("pack %s: %w", dir, err)
		}
		d.Packs = append(d.Packs, manifest.PackRef{Name: p.Name, SHA256: sha})
	}
	if files := d.Run.Agent.Files; files != "" {
		sha, err := d.archive(func(w io.Writer) (string, error) {
			return manifest.Archive(ctx, files, w, manifest.ArchiveOptions{})
		})
		if err != nil {
			return fmt.Errorf("agent.files %s: %w", files, err)
		}
		d.AgentFiles = sha
	}
	return nil
}

func (d *Draft) archive(write func(io.Writer) (string, error)) (sha string, err error) {
	f, err := os.CreateTemp(d.tmp, "archive-*")
	if err != nil {
		return "", err
	}
	sha, err = write(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	d.archives[sha] = f.Name()
	return sha, nil
}
