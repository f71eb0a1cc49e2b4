// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
)

// harborPack is one Harbor task, or a directory of them. Both are archived as a directory of
// tasks, so that a task is called the same on a worker, whose directory for the archive has
// another name.
type harborPack struct {
	root   string // the pack's directory, absolute
	shown  string // the same for messages
	format format
	// parent has the tasks' directories, which are called names.
	parent string
	names  []string

	options LoadOptions
	stored  harborVariables // of an unpacked archive
}

// openHarborPack lists the tasks. They are read one by one, when somebody asks for them:
// a worker wants few of many.
func openHarborPack(shown, root string, f format, o LoadOptions) (*harborPack, error) {
	p := &harborPack{root: root, shown: shown, format: f, parent: root, options: o}
	var err error
	if f == harborTask {
		p.parent, p.names = filepath.Dir(root), []string{filepath.Base(root)}
		return p, nil
	}
	if p.names, err = harborNames(root); err != nil {
		return nil, fmt.Errorf("pack %s: %w", shown, err)
	}
	if p.stored, err = readHarborVariables(root); err != nil {
		return nil, fmt.Errorf("pack %s: %w", shown, err)
	}
	return p, nil
}

// shownDir is the directory of a task for messages.
func (p *harborPack) shownDir(name string) string {
	if p.format == harborTask {
		return p.shown
	}
	return filepath.Join(p.shown, name)
}

func (p *harborPack) where(ref TaskRef) string {
	return filepath.Join(p.shownDir(ref.Dir), taskFileName)
}

// tasks reads each task. One that is wrong has its id all the same, for those who leave
// it out.
func (p *harborPack) tasks(ctx context.Context) iter.Seq2[TaskRef, error] {
	return func(yield func(TaskRef, error) bool) {
		byID := map[string]string{}
		for _, name := range p.names {
			if ctx.Err() != nil {
				yield(TaskRef{}, context.Cause(ctx))
				return
			}
			l, err := p.load(name)
			if err != nil {
				yield(TaskRef{}, fmt.Errorf("pack %s: %s: %w", p.shown, name, err))
				return
			}
			ref := TaskRef{ID: l.id, Dir: name, loaded: l}
			problems := l.problems()
			if first, twice := byID[l.id]; twice {
				problems = append(problems, l.duplicate(filepath.Join(p.shownDir(first), taskFileName)))
			}
			byID[l.id] = name
			for _, problem := range problems {
				if !yield(ref, problem) {
					return
				}
			}
			if len(problems) == 0 && !yield(ref, nil) {
				return
			}
		}
	}
}

func (p *harborPack) task(ref TaskRef) (*Task, error) {
	if !slices.Contains(p.names, ref.Dir) {
		return nil, errors.New("the reference is not to a directory of this pack")
	}
	l := ref.loaded
	if l == nil || l.pack != p {
		var err error
		if l, err = p.load(ref.Dir); err != nil {
			return nil, err
		}
	}
	if problems := l.problems(); len(problems) > 0 {
		return nil, problems
	}
	if l.id != ref.ID {
		return nil, fmt.Errorf("the directory is of task %s; the pack is not the one that was planned", quote(l.id))
	}
	return l.task, nil
}

// artifacts are none: what Harbor tasks collect are no globs in the workdir.
func (p *harborPack) artifacts() []string { return nil }
