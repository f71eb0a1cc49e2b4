// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"io"
)

// Spool takes the reports while they are written. Create is called once for a name;
// what is written to it is the object of that name below the run.
type Spool interface {
	Create(name string) (io.Writer, error)
}

// MaxListed is how many entries a list inside a report has at most. A longer list goes
// whole to a sidecar, JSON lines in plan order, and the report has the first of it.
const MaxListed = 1000

// list is such a list.
type list[T any] struct {
	spool  Spool
	name   string // of the sidecar
	count  int64
	inline []T
	out    io.Writer // nil until the list is too long
}

func newList[T any](spool Spool, name string) *list[T] {
	return &list[T]{spool: spool, name: name, inline: []T{}}
}

func (l *list[T]) add(entry T) error {
	l.count++
	if len(l.inline) < MaxListed {
		l.inline = append(l.inline, entry)
		return nil
	}
	if l.out == nil {
		out, err := l.spool.Create(l.name)
		if err != nil {
			return err
		}
		l.out = out
		for _, e := range l.inline {
			if err := writeLine(out, e, "\n"); err != nil {
				return err
			}
		}
	}
	return writeLine(l.out, entry, "\n")
}

// sidecar is the name of the sidecar, nil when there is none.
func (l *list[T]) sidecar() *string {
	if l.out == nil {
		return nil
	}
	return &l.name
}

// writeLine writes a value on one line, and what ends it.
func writeLine(w io.Writer, v any, end string) error {
	line, err := encode(v, "")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, string(bytes.TrimSuffix(line, []byte("\n")))+end)
	return err
}

// writeFile writes a whole report, indented for people.
func writeFile(spool Spool, name string, v any) error {
	body, err := encode(v, "  ")
	if err != nil {
		return err
	}
	w, err := spool.Create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(body)
	return err
}

func encode(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return buf.Bytes(), err
}
