// SPDX-License-Identifier: Apache-2.0

package redact

import "bytes"

// finder goes through data once for all values: it remembers where each value comes
// next, so that one that never comes is not looked for again and again.
type finder struct {
	data []byte
	next []int // by value: where it is from the position on, len(data) for nowhere
}

func (r *Redactor) finder(data []byte) *finder {
	f := &finder{data: data, next: make([]int, len(r.values))}
	for i := range f.next {
		f.next[i] = -1
	}
	return f
}

// first returns the value that begins first at or behind pos; of two at one place the
// longer. It returns length 0 when there is none.
func (r *Redactor) first(f *finder, pos int) (at, length int) {
	at = len(f.data)
	for i, v := range r.values {
		if f.next[i] < pos {
			f.next[i] = len(f.data)
			if n := bytes.Index(f.data[pos:], v); n >= 0 {
				f.next[i] = pos + n
			}
		}
		if f.next[i] < at {
			at, length = f.next[i], len(v)
		}
	}
	return at, length
}

// scan writes data up to and with the last value to out, replaced, and returns the
// rest with how much of it can't be the beginning of a value. final says that nothing
// follows.
func (r *Redactor) scan(out *bytes.Buffer, data []byte, final bool) (rest []byte, safe int) {
	hold := len(data)
	if !final {
		hold = r.heldFrom(data)
	}
	f := r.finder(data)
	pos := 0
	for {
		at, length := r.first(f, pos)
		// What may become a longer value, here or before, waits for more.
		if length == 0 || at >= hold {
			break
		}
		out.Write(data[pos:at])
		out.WriteString(Marker)
		pos = at + length
		if pos > hold {
			// The held end began inside of what is replaced now.
			hold = pos + r.heldFrom(data[pos:])
		}
	}
	return data[pos:], hold - pos
}

// heldFrom returns where the longest end of data begins that is the beginning of a
// value, and not yet all of it.
func (r *Redactor) heldFrom(data []byte) int {
	for i := max(0, len(data)-r.longest+1); i < len(data); i++ {
		for _, v := range r.values {
			if len(v) <= len(data)-i {
				break // they get shorter from here on
			}
			if bytes.HasPrefix(v, data[i:]) {
				return i
			}
		}
	}
	return len(data)
}
