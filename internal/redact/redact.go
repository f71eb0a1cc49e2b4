// SPDX-License-Identifier: Apache-2.0

// Package redact keeps secret values out of whatever is stored: it replaces each
// exact occurrence of a value by a marker, in streams too, where a value may be cut
// by the end of a chunk.
//
// Limits: only exact bytes are found. A value that a program encodes first (base64,
// URL escapes) or prints in pieces with something between is not. Values shorter
// than [MinLength] bytes are left alone, since they would blot out ordinary text.
package redact

import (
	"bytes"
	"io"
	"slices"
)

// MinLength is the length in bytes of the shortest value that is replaced.
const MinLength = 5

// Marker stands where a value was.
const Marker = "[redacted]"

// Redactor replaces values. The zero value and nil replace nothing.
type Redactor struct {
	values  [][]byte // longest first, so that a value inside another can't leave a rest
	longest int
}

// New returns a redactor for the values. Empty and short ones are dropped.
func New(values ...string) *Redactor {
	r := &Redactor{}
	for _, v := range values {
		if len(v) >= MinLength {
			r.values = append(r.values, []byte(v))
			r.longest = max(r.longest, len(v))
		}
	}
	slices.SortFunc(r.values, func(a, b []byte) int { return len(b) - len(a) })
	return r
}

// Empty reports that there is nothing to replace.
func (r *Redactor) Empty() bool { return r == nil || len(r.values) == 0 }

// String returns s with every value replaced.
func (r *Redactor) String(s string) string {
	if r.Empty() {
		return s
	}
	return string(r.Bytes([]byte(s)))
}

// Bytes returns b with every value replaced. It returns b itself when there is
// nothing to do.
func (r *Redactor) Bytes(b []byte) []byte {
	if r.Empty() {
		return b
	}
	var out bytes.Buffer
	rest, _ := r.scan(&out, b, true)
	if out.Len() == 0 {
		return b
	}
	out.Write(rest)
	return out.Bytes()
}

// Writer returns a writer that passes redacted bytes on to w. Close writes what was
// held back; it doesn't close w. Without values it holds nothing back.
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
	data := append(w.held, p...)
	var out bytes.Buffer
	rest, safe := w.r.scan(&out, data, false)
	out.Write(rest[:safe])
	w.held = slices.Clone(rest[safe:])
	if _, err := w.w.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *writer) Close() error {
	held := w.held
	w.held = nil
	_, err := w.w.Write(held)
	return err
}

// scan writes data up to and with the last value to out, replaced, and returns the
// rest with how much of it can't be the beginning of a value.
func (r *Redactor) scan(out *bytes.Buffer, data []byte, final bool) (rest []byte, safe int) {
	for {
		at, length := r.find(data)
		if at < 0 {
			break
		}
		// A longer value may begin at or before this one and not be complete yet.
		if !final && at+r.longest > len(data) && r.partialBefore(data, at, length) {
			return data, r.heldFrom(data)
		}
		out.Write(data[:at])
		out.WriteString(Marker)
		data = data[at+length:]
	}
	if final {
		return data, len(data)
	}
	return data, r.heldFrom(data)
}

// find returns the first value in data; of two at one place the longer.
func (r *Redactor) find(data []byte) (at, length int) {
	at = -1
	for _, v := range r.values {
		if i := bytes.Index(data, v); i >= 0 && (at < 0 || i < at) {
			at, length = i, len(v)
		}
	}
	return at, length
}

// heldFrom returns where the longest end of data begins that is the beginning of a
// value.
func (r *Redactor) heldFrom(data []byte) int {
	for i := max(0, len(data)-r.longest+1); i < len(data); i++ {
		for _, v := range r.values {
			if bytes.HasPrefix(v, data[i:]) {
				return i
			}
		}
	}
	return len(data)
}

// partialBefore reports whether a longer value that is not complete yet covers the
// match at [at, at+length).
func (r *Redactor) partialBefore(data []byte, at, length int) bool {
	from := r.heldFrom(data)
	return from <= at && len(data)-from > length
}
