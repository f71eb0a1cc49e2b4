// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// maxRowProblems is after how many bad rows reading stops.
const maxRowProblems = 20

// tasks streams the rows. Problems stop it after 20; duplicates may only be known at the
// end.
func (p *datasetPack) tasks(ctx context.Context) iter.Seq2[TaskRef, error] {
	return func(yield func(TaskRef, error) bool) {
		s := rowStream{pack: p, yield: yield, ids: newIDSet(p.idsInMemory)}
		err := s.run(ctx)
		err = errors.Join(err, s.ids.Close())
		if err != nil && !s.stopped {
			yield(TaskRef{}, fmt.Errorf("dataset %s: %w", p.data.shown, err))
		}
	}
}

type rowStream struct {
	pack     *datasetPack
	yield    func(TaskRef, error) bool
	ids      *IDSet
	rows     int
	problems int
	stopped  bool // nothing more may be yielded
}

func (s *rowStream) run(ctx context.Context) error {
	r, err := s.pack.data.open()
	if err != nil {
		return s.readError(err, 1)
	}
	defer r.Close() //nolint:errcheck // opened for reading
	scanner := newRowScanner(contextReader{ctx, r}, maxRow)
	for !s.stopped {
		line, err := scanner.next()
		if errors.Is(err, io.EOF) {
			return s.end()
		}
		if err != nil {
			return s.readError(err, scanner.line+1)
		}
		if err := s.row(line); err != nil {
			return err
		}
	}
	return nil
}

// readError tells broken data, which is the file's problem, from trouble in reading.
func (s *rowStream) readError(err error, line int) error {
	if errors.Is(err, errGzip) {
		s.problem(Problem{Line: line, Text: err.Error(), Fix: "make the file again"})
		s.stopped = true
		return nil
	}
	return err
}

func (s *rowStream) row(r row) error {
	s.rows++
	if r.long {
		s.problem(Problem{Line: r.line, Text: fmt.Sprintf("the row is longer than %d bytes", maxRow), Fix: "put large data into files of the pack"})
		return nil
	}
	t, err := s.pack.readRow(r.data)
	if t.id != "" { // a row that is wrong otherwise has its id all the same
		first, twice, err := s.ids.Add(t.id, uint64(r.line))
		if err != nil {
			return err
		}
		if twice {
			s.problem(s.pack.duplicate(quote(t.id), first, r.line))
			return nil
		}
	}
	if err != nil {
		s.problem(rowProblem(err, r.line))
		return nil
	}
	if !s.yield(TaskRef{ID: t.id, Offset: r.offset, Length: int64(len(r.data)), Line: r.line}, nil) {
		s.stopped = true
	}
	return nil
}

// end says what is only known at the end of the file.
func (s *rowStream) end() error {
	if s.rows == 0 {
		s.problem(Problem{Text: "the dataset is empty", Fix: "write one JSON object per line"})
		return nil
	}
	late, err := s.ids.Duplicates(maxRowProblems)
	if err != nil {
		return err
	}
	for _, d := range late {
		if s.stopped {
			break
		}
		s.problem(s.pack.duplicate("", d.First, int(d.Second)))
	}
	return nil
}

func (s *rowStream) problem(p Problem) {
	p.File = s.pack.data.shown
	s.problems++
	if !s.yield(TaskRef{}, p) {
		s.stopped = true
		return
	}
	if s.problems == maxRowProblems {
		s.stopped = true
		s.yield(TaskRef{}, Problem{File: p.File, Line: p.Line, Text: fmt.Sprintf("reading stopped here, after %d problems", s.problems)})
	}
}

func (p *datasetPack) duplicate(id string, first uint64, line int) Problem {
	return Problem{
		Line: line, Entry: p.spec.Dataset.IDField,
		Text: fmt.Sprintf("the id %s is already used in line %d", cmp.Or(id, "of this row"), first),
		Fix:  "give each row an id of its own",
	}
}

func rowProblem(err error, line int) Problem {
	var f *fieldError
	if errors.As(err, &f) {
		return Problem{Line: line, Entry: f.field, Text: f.text, Fix: f.fix}
	}
	return Problem{Line: line, Text: err.Error()}
}

// taskRow is a row, understood.
type taskRow struct {
	id       string
	agentRow []byte
	rendered
}

// readRow understands a row. The id is there as soon as it is known, even with an
// error.
func (p *datasetPack) readRow(data []byte) (taskRow, error) {
	var t taskRow
	fields, err := parseRow(data)
	if err != nil {
		return t, err
	}
	if t.id, err = p.rowID(fields); err != nil {
		return t, err
	}
	var values map[string]any
	if values, t.agentRow, err = p.agentFields(fields); err != nil {
		return t, err
	}
	t.rendered, err = p.render(values)
	return t, err
}

// where says where the row of a task is.
func (p *datasetPack) where(ref TaskRef) string {
	if ref.Line > 0 {
		return fmt.Sprintf("%s:%d", p.data.shown, ref.Line)
	}
	return p.data.shown
}

func (p *datasetPack) task(ref TaskRef) (*Task, error) {
	if ref.Offset < 0 || ref.Length <= 0 || ref.Length > maxRow {
		return nil, errors.New("the reference is not to a row")
	}
	data, err := p.data.read(ref.Offset, ref.Length)
	if err != nil {
		return nil, err
	}
	r, err := p.readRow(data)
	if err != nil {
		return nil, err
	}
	if r.id != ref.ID {
		return nil, fmt.Errorf("the row is of task %s; the dataset is not the one that was planned", quote(r.id))
	}
	s := p.spec
	step := Step{
		Instruction: r.instruction, AgentRow: r.agentRow, Row: data,
		Setup: p.made(s.Setup), Oracle: p.made(s.Oracle), Grade: *p.made(s.Grade.program()), IgnoreExitCode: s.Grade.IgnoreExitCode,
		AgentTimeout: s.AgentTimeout,
	}
	return &Task{
		ID: r.id, Category: s.Category, Metadata: s.Metadata, Env: r.env,
		AgentProcesses: s.AgentProcesses, Files: p.path(s.Files),
		Artifacts: slices.Clone(s.Artifacts), Regrade: p.regrade(), Steps: []Step{step},
	}, nil
}

// made turns a program of the file into one of a task.
func (p *datasetPack) made(prog *packProgram) *Program {
	if prog == nil {
		return nil
	}
	return &Program{Command: slices.Clone(prog.Command), Files: p.path(prog.Files), Timeout: prog.Timeout}
}
