// SPDX-License-Identifier: Apache-2.0

package logview

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/tidemill/tidemill/bundle"
)

// pieces yields lines with their ends; one that is longer than a buffer comes in pieces.
// They are valid until the next.
func pieces(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := in.ReadSlice('\n')
			if len(line) > 0 && !yield(line, nil) {
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				yield(nil, err)
				return
			}
		}
	}
}

// Growing shows a log that is written meanwhile: what was written of it goes in, in pieces
// of any length, and comes out as records.
type Growing struct {
	P    *Printer
	Name string
	rest []byte // a record that isn't all there
}

// Write takes the next piece.
func (g *Growing) Write(p []byte) (int, error) {
	before := len(g.rest)
	g.rest = append(g.rest, p...)
	end := bytes.LastIndexByte(p, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	end += before
	for rec, err := range bundle.ReadLog(bytes.NewReader(g.rest[:end])) {
		if err == nil {
			err = g.P.Record(g.Name, rec)
		}
		if err != nil {
			return 0, err
		}
	}
	g.rest = append(g.rest[:0], g.rest[end:]...)
	return len(p), nil
}
