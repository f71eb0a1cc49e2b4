// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
)

// Pack is a directory of tasks, opened and checked. It holds no open files and may be
// used by several goroutines.
type Pack struct {
	Name        string
	Description string
	Category    string
	// Dir is absolute.
	Dir      string
	Metadata map[string]any

	content packContent
}

// packContent is what packs of different formats do in their own ways. What the methods
// promise stands at those of [Pack] that call them.
type packContent interface {
	tasks(ctx context.Context) iter.Seq2[TaskRef, error]
	task(ref TaskRef) (*Task, error)
	// where is a file, with a line where there is one, for messages about a task.
	where(ref TaskRef) string
	archive(ctx context.Context, w io.Writer) (string, error)
	artifacts() []string
}

var (
	_ packContent = (*datasetPack)(nil)
	_ packContent = (*harborPack)(nil)
)

// OpenPack opens the pack that a directory is, of whatever format, and checks what is
// common to its tasks. Problems come back as [Problems]. The tasks themselves are checked
// by [Pack.Tasks].
func OpenPack(dir string, o LoadOptions) (*Pack, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	format, text, fix := packFormat(abs)
	if text != "" {
		return nil, Problems{{File: dir, Text: text, Fix: fix}}
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	p := &Pack{Name: filepath.Base(abs), Dir: abs}
	if format != nativeFormat {
		h, err := openHarborPack(dir, abs, format, o)
		if err != nil {
			return nil, err
		}
		p.content = h
		return p, nil
	}
	d, err := openDatasetPack(dir, abs, o)
	if err != nil {
		return nil, err
	}
	p.content = d
	p.Name = cmp.Or(d.spec.Name, p.Name)
	p.Description, p.Category, p.Metadata = d.spec.Description, d.spec.Category, d.spec.Metadata
	return p, nil
}

// Tasks streams the tasks of the pack in their order, checking each: the rows of a
// dataset in the order of its file, Harbor tasks in that of their directories' names.
// What is wrong comes as a [Problem], with the task's id in the reference where the
// problem is that of a task which can be left out; reading goes on, for a dataset until
// there were 20. Any other error is the last thing that comes. Memory does not grow with a
// dataset.
//
// A pack whose rows brought an error must not be run in part: duplicates may only be
// known at the end.
func (p *Pack) Tasks(ctx context.Context) iter.Seq2[TaskRef, error] { return p.content.tasks(ctx) }

// Task returns a task by the reference that [Pack.Tasks] gave for it, from this pack
// or from one with the same digest.
func (p *Pack) Task(ref TaskRef) (*Task, error) {
	t, err := p.content.task(ref)
	if err != nil {
		return nil, fmt.Errorf("pack %s: task %s: %s: %w", p.Name, quote(ref.ID), p.content.where(ref), err)
	}
	return t, nil
}

// Archive writes the pack as [Archive] writes a directory: a dataset as plain rows inside
// the pack, Harbor tasks with all that is in their directories, and variables with the
// values that they have here. So the digest depends on content alone, and a worker opens
// the unpacked pack without any variable. w may be nil, for the digest alone.
func (p *Pack) Archive(ctx context.Context, w io.Writer) (string, error) {
	sum, err := p.content.archive(ctx, w)
	if err != nil {
		return "", fmt.Errorf("archive pack %s: %w", p.Name, err)
	}
	return sum, nil
}

// Various reports whether each task of the pack says for itself what it needs of a
// runtime. Of other packs one task stands for all.
func (p *Pack) Various() bool {
	_, ok := p.content.(*harborPack)
	return ok
}

// Artifacts are the globs in the workdir whose files are collected for every task.
func (p *Pack) Artifacts() []string { return p.content.artifacts() }
