// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxRow bounds a row of a dataset: rows travel to sandboxes whole.
const maxRow = 16 << 20

// byteOrderMark may come first in a file; it is not part of the row.
const byteOrderMark = "\ufeff"

// row is a line of a dataset without its line end.
type row struct {
	data   []byte // valid until the next call
	offset int64  // of data in the uncompressed file
	line   int
	long   bool // more than maxRow; data is cut
}

// rowScanner reads rows one by one. Blank lines are passed over.
type rowScanner struct {
	r      *bufio.Reader
	buf    []byte
	offset int64
	line   int
	most   int
}

func newRowScanner(r io.Reader, most int) *rowScanner {
	return &rowScanner{r: bufio.NewReaderSize(r, 64<<10), most: most}
}

// next returns the next row, or io.EOF.
func (s *rowScanner) next() (row, error) {
	for {
		start := s.offset
		n, err := s.readLine()
		if err != nil && (n == 0 || !errors.Is(err, io.EOF)) {
			return row{}, err
		}
		s.line++
		r := row{data: s.buf, offset: start, line: s.line, long: n > int64(len(s.buf))}
		r.data = bytes.TrimSuffix(bytes.TrimSuffix(r.data, []byte("\n")), []byte("\r"))
		if s.line == 1 && bytes.HasPrefix(r.data, []byte(byteOrderMark)) {
			r.data = r.data[len(byteOrderMark):]
			r.offset += int64(len(byteOrderMark))
		}
		r.long = r.long || len(r.data) > s.most
		if r.long || len(bytes.TrimSpace(r.data)) > 0 {
			return r, nil
		}
	}
}

// readLine reads a line with its end into buf and returns its length, which is larger
// than buf when the line is too long to be kept.
func (s *rowScanner) readLine() (int64, error) {
	s.buf = s.buf[:0]
	var n int64
	room := s.most + len(byteOrderMark) + len("\r\n")
	for {
		part, err := s.r.ReadSlice('\n')
		n += int64(len(part))
		s.buf = append(s.buf, part[:min(len(part), room-len(s.buf))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			s.offset += n
			return n, err
		}
	}
}
