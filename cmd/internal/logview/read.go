// SPDX-License-Identifier: Apache-2.0

package logview

import (
	"bytes"
	"errors"
	"io"

	"github.com/tidemill/tidemill/bundle"
)

// Copy shows a log to its end, or its last records where tail is more than 0. A log that
// a crash cut off is shown as far as it goes, without an error.
func Copy(p *Printer, name string, r io.Reader, tail int) error {
	show := func(rec bundle.LogRecord) error { return p.Record(name, rec) }
	return each(r, func(bundle.LogRecord) bool { return true }, tail, show)
}

// CopyRaw writes one stream of a log as the program wrote it, or the last lines of it
// where tail is more than 0.
func CopyRaw(w io.Writer, r io.Reader, s bundle.LogStream, tail int) error {
	return each(r, func(rec bundle.LogRecord) bool { return rec.Stream == s }, tail, func(rec bundle.LogRecord) error {
		text := rec.Text
		if rec.Newline {
			text = append(bytes.Clone(text), '\n')
		}
		_, err := w.Write(text)
		return err
	})
}

// each hands on the records that are wanted, or the last ones of them.
func each(r io.Reader, want func(bundle.LogRecord) bool, tail int, do func(bundle.LogRecord) error) error {
	last := ring{size: tail}
	for rec, err := range bundle.ReadLog(r) {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
		switch {
		case !want(rec):
		case tail > 0:
			last.add(rec)
		default:
			if err := do(rec); err != nil {
				return err
			}
		}
	}
	return last.each(do)
}

// ring holds the last records.
type ring struct {
	size int
	list []bundle.LogRecord
	next int // where the next goes once the list is full
}

func (r *ring) add(rec bundle.LogRecord) {
	rec.Text = bytes.Clone(rec.Text)
	if len(r.list) < r.size {
		r.list = append(r.list, rec)
		return
	}
	r.list[r.next] = rec
	r.next = (r.next + 1) % r.size
}

func (r *ring) each(do func(bundle.LogRecord) error) error {
	for i := range r.list {
		if err := do(r.list[(r.next+i)%len(r.list)]); err != nil {
			return err
		}
	}
	return nil
}

// CopyLines copies plain text, or its last lines where tail is more than 0, fit for a
// terminal where visible is set.
func CopyLines(w io.Writer, r io.Reader, tail int, visible bool) error {
	show := func(line []byte) error {
		if visible {
			text, ended := bytes.CutSuffix(line, []byte("\n"))
			line = []byte(Visible(text))
			if ended {
				line = append(line, '\n')
			}
		}
		_, err := w.Write(line)
		return err
	}
	last := ring{size: tail}
	for line, err := range pieces(r) {
		if err != nil {
			return err
		}
		if tail > 0 {
			last.add(bundle.LogRecord{Text: line})
		} else if err := show(line); err != nil {
			return err
		}
	}
	return last.each(func(rec bundle.LogRecord) error { return show(rec.Text) })
}
