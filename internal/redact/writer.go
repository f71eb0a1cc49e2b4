// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"io"
	"slices"
)

// Writer returns a writer that passes redacted bytes on to w. Close writes what was
// held back; it doesn't close w, and can be repeated. Without values it holds nothing
// back.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	if r.Empty() {
		return passThrough{w}
	}
	return &writer{r: r, w: w}
}

type passThrough struct{ io.Writer }

func (passThrough) Close() error { return nil }

type writer struct {
	r    *Redactor
	w    io.Writer
	held []byte // the end of what came, which could be the beginning of a value
}

func (w *writer) Write(p []byte) (int, error) {
	data := slices.Concat(w.held, p)
	var out bytes.Buffer
	rest, safe := w.r.scan(&out, data, false)
	out.Write(rest[:safe])
	w.held = rest[safe:]
	if out.Len() == 0 {
		return len(p), nil
	}
	if _, err := w.w.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *writer) Close() error {
	if len(w.held) == 0 {
		return nil
	}
	held := w.r.Bytes(w.held)
	w.held = nil
	_, err := w.w.Write(held)
	return err
}
