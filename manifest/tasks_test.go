// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outcome reads all tasks of a pack, each with [Pack.Task] too.
func outcome(t *testing.T, p *Pack) (ids, errs []string) {
	t.Helper()
	for ref, err := range p.Tasks(t.Context()) {
		if err != nil {
			errs = append(errs, strings.ReplaceAll(err.Error(), p.Dir+"/", ""))
			continue
		}
		ids = append(ids, ref.ID)
		task, err := p.Task(ref)
		if err != nil {
			t.Errorf("Task(%v): %v", ref, err)
		} else if task.ID != ref.ID || int64(len(task.Steps[0].Row)) != ref.Length {
			t.Errorf("Task(%v) = %q with a row of %d bytes", ref, task.ID, len(task.Steps[0].Row))
		}
	}
	return ids, errs
}

func zip(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

const ab = `{"id":"a","prompt":"1"}` + "\n" + `{"id":"b","prompt":"2"}` + "\n"

func TestTasks(t *testing.T) {
	long := `{"id":"` + strings.Repeat("x", maxRow) + `","prompt":""}` + "\n"
	for _, c := range []struct {
		name, rows string
		ids, errs  []string
	}{
		{"plain", ab, []string{"a", "b"}, nil},
		{"no newline at the end", strings.TrimSpace(ab), []string{"a", "b"}, nil},
		{"gzip by content", zip(ab), []string{"a", "b"}, nil},
		{"gzip of two parts", zip(ab) + zip(`{"id":"c","prompt":"3"}`), []string{"a", "b", "c"}, nil},
		{"byte order mark", byteOrderMark + ab, []string{"a", "b"}, nil},
		{"CRLF", strings.ReplaceAll(ab, "\n", "\r\n"), []string{"a", "b"}, nil},
		{"blank lines", "\n\r\n" + strings.ReplaceAll(ab, "\n", "\n \t\n"), []string{"a", "b"}, nil},
		{"any text as id", `{"id":"HumanEval/0 \"ü\"","prompt":""}`, []string{`HumanEval/0 "ü"`}, nil},
		{"numbers as id", `{"id":-12,"prompt":""}`, []string{"-12"}, nil},
		{"id of 200 bytes", `{"id":"` + strings.Repeat("i", 200) + `","prompt":""}`, []string{strings.Repeat("i", 200)}, nil},
		{
			"id too long for keys", `{"id":"` + strings.Repeat("/", 67) + `","prompt":""}`, nil,
			[]string{"rows.jsonl:1: id: the id takes 201 bytes in the store's keys; use 200 at most; bytes outside A-Z a-z 0-9 . _ - count three each"},
		},
		{
			"NUL in the id", `{"id":"a\u0000b","prompt":""}`, nil,
			[]string{"rows.jsonl:1: id: the id has a NUL character in it; leave it out"},
		},
		{
			"invalid UTF-8", ab + "{\"id\":\"\xff\",\"prompt\":\"\"}\n",
			[]string{"a", "b"},
			[]string{"rows.jsonl:3: the row is not valid UTF-8; convert the file to UTF-8"},
		},
		{
			"long row", long + ab,
			[]string{"a", "b"},
			[]string{fmt.Sprintf("rows.jsonl:1: the row is longer than %d bytes; put large data into files of the pack", maxRow)},
		},
		{
			"gzip cut short", zip(strings.Repeat(ab, 1))[:30], nil,
			[]string{"rows.jsonl:1: broken gzip data: unexpected EOF; make the file again"},
		},
		{"empty", "", nil, []string{"rows.jsonl: the dataset is empty; write one JSON object per line"}},
		{"empty gzip", zip(""), nil, []string{"rows.jsonl: the dataset is empty; write one JSON object per line"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, write(t, map[string]string{"pack.yaml": smallPack, "rows.jsonl": c.rows}))
			ids, errs := outcome(t, p)
			if diff := cmp.Diff(c.ids, ids); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.errs, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// Beyond what fits in memory duplicates are found all the same, at the end.
func TestTasksLateDuplicates(t *testing.T) {
	var rows strings.Builder
	for i := range 100 {
		fmt.Fprintf(&rows, "{\"id\":%d,\"prompt\":\"\"}\n", i%97)
	}
	p := open(t, write(t, map[string]string{"pack.yaml": smallPack, "rows.jsonl": rows.String()}))
	p.content.(*datasetPack).idsInMemory = 10
	_, errs := outcome(t, p)
	var want []string
	for i := range 3 {
		want = append(want, fmt.Sprintf("rows.jsonl:%d: id: the id of this row is already used in line %d; give each row an id of its own", 98+i, 1+i))
	}
	if diff := cmp.Diff(want, errs); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestTask(t *testing.T) {
	dir := write(t, map[string]string{
		"pack.yaml": `version: 1
kind: dataset
name: demo
category: cats
dataset: {path: rows.jsonl, id_field: id}
agent_fields: [b, a]
instruction: "{{.a}}/{{.b}}/{{if .b}}yes{{else}}no{{end}}"
env: {A: "{{.a}}"}
files: shared
setup: {command: [make], timeout: 5s}
oracle: {command: [sh, solve.sh]}
grade: {command: [sh, grade.sh], timeout: 1m}
agent_timeout: 2m
agent_processes: keep
artifacts: ["out/*"]
metadata: {source: here, level: 3}
`,
		"rows.jsonl":   ` {"secret": "s", "a": 1.10, "id": "x", "b": null} ` + "\n",
		"shared/f":     "",
		"tests/grade":  "",
		"solution/sol": "",
	})
	p := open(t, dir)
	var ref TaskRef
	for r, err := range p.Tasks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ref = r
	}
	got, err := p.Task(ref)
	if err != nil {
		t.Fatal(err)
	}
	want := &Task{
		ID: "x", Category: "cats", Metadata: map[string]any{"source": "here", "level": int64(3)},
		Env: map[string]string{"A": "1.10"}, AgentProcesses: "keep", Files: filepath.Join(dir, "shared"),
		Artifacts: []string{"out/*"},
		Steps: []Step{{
			Instruction: "1.10//no",
			AgentRow:    []byte(`{"b":null,"a":1.10}`),
			Row:         []byte(` {"secret": "s", "a": 1.10, "id": "x", "b": null} `),
			Setup:       &Program{Command: []string{"make"}, Timeout: Duration(5e9)},
			Oracle:      &Program{Command: []string{"sh", "solve.sh"}, Files: filepath.Join(dir, "solution")},
			Grade:       Program{Command: []string{"sh", "grade.sh"}, Files: filepath.Join(dir, "tests"), Timeout: Duration(60e9)},

			AgentTimeout: Duration(120e9),
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("task (-want +got):\n%s", diff)
	}
	for _, bad := range []TaskRef{
		{ID: "y", Offset: ref.Offset, Length: ref.Length},
		{ID: "x", Offset: ref.Offset + 5, Length: ref.Length - 5},
		{ID: "x", Offset: 1 << 40, Length: 3},
		{ID: "x", Offset: -1, Length: 3},
		{ID: "x", Offset: 0, Length: 1 << 40},
	} {
		if task, err := p.Task(bad); err == nil {
			t.Errorf("Task(%v) = %v", bad, task)
		}
	}
}

func TestTasksStops(t *testing.T) {
	p := open(t, write(t, map[string]string{"pack.yaml": smallPack, "rows.jsonl": ab}))
	for range p.Tasks(t.Context()) {
		break // leaves nothing behind and calls nobody again
	}
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	n := 0
	for _, err := range p.Tasks(ctx) {
		n++
		if !errors.Is(err, stop) {
			t.Errorf("err = %v, want the cause", err)
		}
	}
	if n != 1 {
		t.Errorf("%d errors, want 1", n)
	}
}

func FuzzRows(f *testing.F) {
	f.Add([]byte(ab), 40)
	f.Add([]byte(byteOrderMark+"\r\n\n{}\r\n"), 3)
	f.Add([]byte(strings.Repeat("x", 200_000)+"\n"), 100)
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		most = 1 + max(most, -most)%100_000
		s := newRowScanner(bytes.NewReader(data), most)
		end, line := int64(0), 0
		for {
			r, err := s.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.line <= line || r.offset < end {
				t.Fatalf("line %d at %d comes after line %d, which ends at %d", r.line, r.offset, line, end)
			}
			line, end = r.line, r.offset+int64(len(r.data))
			if r.long {
				continue
			}
			if len(r.data) > most || !bytes.Equal(data[r.offset:end], r.data) || bytes.IndexByte(r.data, '\n') >= 0 {
				t.Fatalf("line %d isn't what is at %d: %q", r.line, r.offset, r.data)
			}
			_, _ = parseRow(r.data)
		}
	})
}
