// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"path/filepath"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
)

// maxTaskProblems is how many problems of tasks are told.
const maxTaskProblems = 100

// walk streams the selected tasks of all packs, in order. Tasks that are wrong are told
// together, at the end; but one that can be left out and isn't selected is nobody's trouble.
func (d *Draft) walk(ctx context.Context, each func(pack int, ref manifest.TaskRef) error) (tasks int, err error) {
	sel := d.Run.Select
	var problems manifest.Problems
	for i, p := range d.packs {
		for ref, err := range p.Tasks(ctx) {
			if d.byID != nil && ref.ID != "" {
				d.byID.saw(ref.ID)
			}
			left := ref.ID != "" && !sel.Match(ref.ID) || sel.Limit > 0 && tasks >= sel.Limit
			if problem, ok := errors.AsType[manifest.Problem](err); ok {
				if ref.ID == "" || !left {
					problems = append(problems, problem)
				}
				continue
			}
			if err != nil {
				return tasks, err
			}
			if left {
				continue // the rest of the pack is still checked
			}
			tasks++
			if err := each(i, ref); err != nil {
				return tasks, err
			}
		}
	}
	return tasks, asError(problems)
}

// asError is nil for no problem. Of very many the last line says how many more there are.
func asError(problems manifest.Problems) error {
	if more := len(problems) - maxTaskProblems; more > 0 {
		problems = append(problems[:maxTaskProblems:maxTaskProblems],
			manifest.Problem{File: problems[maxTaskProblems].File, Text: fmt.Sprintf("this and %d more problems", more-1)})
	}
	if len(problems) == 0 {
		return nil
	}
	return problems
}

// rows adds the rows of a task to a plan: all of its trials together.
func (d *Draft) rows(w *bundle.PlanWriter, pack int, ref manifest.TaskRef, id func(index int) string) error {
	for index := range d.Run.Repeats {
		_, err := w.Add(bundle.PlanRow{
			TaskID: ref.ID, TrialIndex: index, TrialID: id(index), Pack: d.Packs[pack].SHA256,
			Offset: ref.Offset, Length: ref.Length, Dir: ref.Dir,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// partSum is what a part of the plan says, whatever the run is called.
type partSum [sha256.Size]byte

func sumPart(rows []bundle.PlanRow) (partSum, error) {
	h := sha256.New()
	for _, row := range rows {
		if err := sumRow(h, row); err != nil {
			return partSum{}, err
		}
	}
	return partSum(h.Sum(nil)), nil
}

func sumRow(h hash.Hash, row bundle.PlanRow) error {
	row.TrialID = "" // the only thing that depends on the run's id
	line, err := bundle.EncodeRecord(row)
	if err != nil {
		return err
	}
	h.Write(line)
	return nil
}

// ids finds a task that stands in two packs of a run: their trials would have one id.
// Within a pack the manifest sees to it, so a run of one pack keeps no set.
type ids struct {
	set   *manifest.IDSet
	packs []string
	ends  []uint64 // tasks up to the end of each pack
	n     uint64
}

func newIDs(packs []string) *ids { return &ids{set: manifest.NewIDSet(), packs: packs} }

func (s *ids) add(pack int, id string) error {
	if len(s.packs) < 2 {
		return nil
	}
	for len(s.ends) < pack {
		s.ends = append(s.ends, s.n)
	}
	first, twice, err := s.set.Add(id, s.n)
	if twice {
		return s.duplicate(fmt.Sprintf("task %q", id), first, s.n)
	}
	s.n++
	return err
}

// finish reports what the set found too late to say so at once.
func (s *ids) finish() error {
	late, err := s.set.Duplicates(1)
	if err != nil || len(late) == 0 {
		return err
	}
	return s.duplicate(fmt.Sprintf("selected task number %d", late[0].Second+1), late[0].First, late[0].Second)
}

func (s *ids) duplicate(what string, first, second uint64) error {
	return fmt.Errorf("%s stands in pack %s and in pack %s; give it another id in one of them, or make two runs",
		what, s.packOf(first), s.packOf(second))
}

func (s *ids) packOf(n uint64) string {
	pack := 0
	for pack < len(s.ends) && n >= s.ends[pack] {
		pack++
	}
	return s.packs[pack]
}

func baseNames(paths []string) string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = filepath.Base(p)
	}
	return strings.Join(names, ", ")
}
