// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

	packs    []*manifest.Pack
	archives map[string]string // file of each digest
	tmp      string
	opts     manifest.LoadOptions
}

// NewDraft opens the packs of a run, reads every task once and packs the files. tmp is
// a directory for the archives; "" is the system's.
func NewDraft(ctx context.Context, run *manifest.Run, opts manifest.LoadOptions, tmp string) (_ *Draft, err error) {
	if err := unsupported(run); err != nil {
		return nil, err
	}
	d := &Draft{Run: run, archives: map[string]string{}, opts: run.PackOptions(opts)}
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
	digest := manifest.NewDigest(run, d.Packs, d.AgentFiles)
	parts := bundle.NewPlanWriter(bundle.PlanLimits{}, func(int, []byte, []bundle.PlanRow) error { return nil })
	// A trial id has the same length whatever the run is called, so parts come out alike.
	placeholder := func(string, int) string { return strings.Repeat("0", 32) }
	tasks, err := d.walk(ctx, digest, placeholder, func(row bundle.PlanRow) error {
		_, err := parts.Add(row)
		return err
	})
	if err != nil {
		return nil, err
	}
	totals, err := parts.Finish()
	if err != nil {
		return nil, err
	}
	d.Plan = manifest.Plan{Digest: digest.Sum(), Tasks: tasks, Trials: totals.Rows, Parts: totals.Parts}
	return d, nil
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
		if d.Run.Agent.Name == manifest.OracleAgent && len(d.Run.Agent.Command) == 0 && !p.HasOracle() {
			return fmt.Errorf("%s: agent oracle needs a pack with an oracle command, and %s has none", d.Run.File, dir)
		}
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

// walk streams the selected tasks of all packs, in order, as rows of the plan: all
// trials of a task together. It returns the number of tasks.
func (d *Draft) walk(ctx context.Context, digest *manifest.Digest, id func(task string, index int) string, add func(bundle.PlanRow) error) (int, error) {
	sel := d.Run.Select
	tasks := 0
	seen := newIDSet(len(d.packs))
	for i, p := range d.packs {
		before := tasks
		for ref, err := range p.Tasks(ctx) {
			if err != nil {
				return 0, err
			}
			if !sel.Match(ref.ID) || (sel.Limit > 0 && tasks >= sel.Limit) {
				continue // the rest of the pack is still checked
			}
			if err := seen.add(ref.ID, d.Run.Packs[i]); err != nil {
				return 0, err
			}
			tasks++
			digest.Add(ref.ID)
			for index := range d.Run.Repeats {
				row := bundle.PlanRow{
					TaskID: ref.ID, TrialIndex: index, TrialID: id(ref.ID, index), Pack: d.Packs[i].SHA256,
					Offset: ref.Offset, Length: ref.Length, Dir: ref.Dir,
				}
				if err := add(row); err != nil {
					return 0, err
				}
			}
		}
		d.Packs[i].Tasks = tasks - before
	}
	if tasks == 0 {
		return 0, fmt.Errorf("%s: no task is selected; check select.tasks and select.exclude against the ids in %s",
			d.Run.File, strings.Join(base(d.Run.Packs), ", "))
	}
	return tasks, nil
}

func base(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = filepath.Base(p)
	}
	return out
}
