// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
)

const (
	// maxParts is how many parts an upload may have.
	maxParts = 10_000
	// maxPart is how large each may be.
	maxPart = 5 << 30
	// smallRead: a reader that can't seek and says that it gives no more gets a buffer of
	// its own size instead of a part's.
	smallRead = 256 << 10
)

// part is a piece of an object on its way up. It can be read again, which repeating a
// request takes.
type part struct {
	io.ReadSeeker
	size int64
	last bool
	done func() // gives its memory back
}

// source cuts a reader into parts.
type source interface {
	// next returns the next part; what comes after the last one is not asked for.
	next(ctx context.Context) (part, error)
}

// sizeError: a reader gave another number of bytes than was said.
type sizeError struct{ got, want int64 }

func (e *sizeError) Error() string {
	if e.got > e.want {
		return fmt.Sprintf("the reader gives more than %d bytes", e.want)
	}
	return fmt.Sprintf("the reader gave %d bytes, want %d", e.got, e.want)
}

// newSource cuts a file where it stands, and anything else by way of memory.
func (s *Store) newSource(r io.Reader, size int64) (source, error) {
	if f, ok := r.(io.ReaderAt); ok {
		if seeker, ok := r.(io.Seeker); ok {
			if src, err := newSections(f, seeker, size, s.opts.PartSize); src != nil || err != nil {
				return src, err
			}
		}
	}
	return &stream{s: s, r: bufio.NewReader(r), want: size}, nil
}

// sections are parts of a file, which are read when they are sent and take no memory.
type sections struct {
	r             io.ReaderAt
	off, end, cut int64
}

// newSections returns nil for what can't seek in spite of its type, as a pipe.
func newSections(r io.ReaderAt, seeker io.Seeker, size, cut int64) (source, error) {
	off, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, nil
	}
	end, err := seeker.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, nil
	}
	// Behind its end, where a reader may stand too, there is nothing.
	end = max(off, end)
	if size >= 0 && end-off != size {
		return nil, &sizeError{got: end - off, want: size}
	}
	if least := (end - off + maxParts - 1) / maxParts; least > cut {
		const step = 1 << 20
		cut = (least + step - 1) / step * step
	}
	if cut > maxPart {
		return nil, fmt.Errorf("%d bytes are more than an object can have", end-off)
	}
	return &sections{r: r, off: off, end: end, cut: cut}, nil
}

func (s *sections) next(context.Context) (part, error) {
	n := min(s.cut, s.end-s.off)
	p := part{ReadSeeker: io.NewSectionReader(s.r, s.off, n), size: n, done: func() {}}
	s.off += n
	p.last = s.off == s.end
	return p, nil
}

// stream is any reader: a part is read into memory before it is sent.
type stream struct {
	s    *Store
	r    *bufio.Reader
	want int64 // -1 where it isn't known
	got  int64
}

func (s *stream) next(ctx context.Context) (part, error) {
	buf, done, err := s.memory(ctx)
	if err != nil {
		return part{}, err
	}
	n, last, err := fill(ctx, s.r, buf)
	s.got += int64(n)
	switch {
	case err != nil:
	case s.want >= 0 && (s.got > s.want || last && s.got < s.want || !last && s.got == s.want):
		if !last && s.got == s.want {
			s.got++ // there is at least one more
		}
		err = &sizeError{got: s.got, want: s.want}
	}
	if err != nil {
		done()
		return part{}, err
	}
	return part{ReadSeeker: bytes.NewReader(buf[:n]), size: int64(n), last: last, done: done}, nil
}

func (s *stream) memory(ctx context.Context) (buf []byte, done func(), err error) {
	if s.want >= 0 && s.want-s.got <= smallRead {
		return make([]byte, s.want-s.got), func() {}, nil
	}
	buf, err = s.s.buffers.take(ctx)
	return buf, func() { s.s.buffers.give(buf) }, err
}

// fill reads until the buffer is full or the reader ends, and says whether it has ended.
func fill(ctx context.Context, r *bufio.Reader, buf []byte) (n int, last bool, err error) {
	for n < len(buf) {
		if err := ctx.Err(); err != nil {
			return n, false, err
		}
		m, err := r.Read(buf[n:])
		n += m
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	_, err = r.Peek(1)
	if err == io.EOF {
		return n, true, nil
	}
	return n, false, err
}
