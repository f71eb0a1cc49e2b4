// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemill/tidemill/bundle"
)

// Get implements [bundle.Store].
func (s *Store) Get(ctx context.Context, key string) (io.ReadCloser, bundle.Info, error) {
	b, info, err := s.get(ctx, key, 0, math.MaxInt64)
	if err != nil {
		return nil, bundle.Info{}, err
	}
	return b, info, nil
}

// GetRange implements [bundle.Store].
func (s *Store) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if off < 0 || n < 0 {
		return nil, fmt.Errorf("get %s: range of %d bytes from %d, want none below 0", key, n, off)
	}
	if n == 0 {
		return s.nothing(ctx, key)
	}
	end := int64(math.MaxInt64)
	if n <= math.MaxInt64-off {
		end = off + n
	}
	b, _, err := s.get(ctx, key, off, end)
	if statusOf(err) == http.StatusRequestedRangeNotSatisfiable {
		return io.NopCloser(bytes.NewReader(nil)), nil // it begins behind the object's end
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// nothing is a range without bytes, of an object that must be there.
func (s *Store) nothing(ctx context.Context, key string) (io.ReadCloser, error) {
	name, err := s.name(ctx, key)
	if err != nil {
		return nil, err
	}
	v, err := s.versionOf(ctx, opGet, name)
	if err == nil && v == "" {
		err = bundle.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return io.NopCloser(bytes.NewReader(nil)), nil
}

// get opens the bytes of an object from off up to end, which may be behind its own.
func (s *Store) get(ctx context.Context, key string, off, end int64) (*body, bundle.Info, error) {
	name, err := s.name(ctx, key)
	if err != nil {
		return nil, bundle.Info{}, err
	}
	b := &body{s: s, ctx: ctx, key: key, name: name, off: off, end: end, whole: off == 0 && end == math.MaxInt64}
	out, err := b.open("")
	if err != nil {
		return nil, bundle.Info{}, fmt.Errorf("get %s: %w", key, err)
	}
	b.etag = aws.ToString(out.ETag)
	size := aws.ToInt64(out.ContentLength)
	b.end = off + size
	return b, bundle.Info{Key: key, Size: size, Modified: aws.ToTime(out.LastModified), Version: version(out.ETag, out.Metadata)}, nil
}

// resumes is how often a body is asked for again, without a byte coming, before its
// reader is told.
const resumes = 4

// body is an object that is being read. One that breaks off, or gives nothing for long, is
// asked for again from where it stopped, on condition that it is still the same object.
type body struct {
	s         *Store
	ctx       context.Context
	key, name string
	etag      string
	off, end  int64 // of what is still to come
	whole     bool  // nothing was read yet of an object of which all is wanted
	r         io.ReadCloser
	cancel    context.CancelCauseFunc
	tries     int
	err       error // how reading ended
}

// open asks for what is still to come.
func (b *body) open(etag string) (*s3.GetObjectOutput, error) {
	in := &s3.GetObjectInput{Bucket: b.s.bucket, Key: &b.name}
	if etag != "" {
		in.IfMatch = &etag
	}
	switch {
	case b.whole:
	case b.end == math.MaxInt64:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", b.off))
	default:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", b.off, b.end-1))
	}
	ctx, cancel := context.WithCancelCause(b.ctx)
	r := b.s.request(0)
	r.stream = true
	var out *s3.GetObjectOutput
	err := r.do(ctx, func(ctx context.Context, o func(*s3.Options)) (err error) {
		out, err = b.s.client.GetObject(ctx, in, o)
		return err
	})
	if err != nil {
		cancel(nil)
		if absent(err) {
			return nil, bundle.ErrNotFound
		}
		return nil, b.s.explain(b.ctx, opGet, err)
	}
	b.r, b.cancel = out.Body, cancel
	return out, nil
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	for b.err == nil {
		if len(p) == 0 {
			return 0, nil
		}
		n, err := b.read(p)
		b.off += int64(n)
		if n > 0 {
			b.tries = 0
			b.whole = false
		}
		switch {
		case b.off > b.end:
			b.err = fmt.Errorf("read %s: %d bytes more than was said", b.key, b.off-b.end)
		case errors.Is(err, io.EOF) && b.off == b.end:
			b.err = io.EOF
		case err != nil:
			b.err = b.again(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, b.err
}

// read reads from what was opened, within the time for a body to give something.
func (b *body) read(p []byte) (int, error) {
	slow := &slowError{b.s.opts.Timeout}
	timer := time.AfterFunc(slow.after, func() { b.cancel(slow) })
	defer timer.Stop()
	return b.r.Read(p)
}

// again opens what is still to come, unless it is time to give up.
func (b *body) again(err error) error {
	b.shut()
	switch {
	case b.ctx.Err() != nil:
		return fmt.Errorf("read %s: %w", b.key, b.ctx.Err())
	case b.off == b.end:
		return fmt.Errorf("read %s: after its last byte: %w", b.key, err) // a checksum that doesn't fit
	case b.tries == resumes, b.etag == "":
		return fmt.Errorf("read %s: %w: it breaks off at byte %d: %w", b.key, bundle.ErrUnavailable, b.off, cause(err))
	}
	b.tries++
	_, err = b.open(b.etag)
	switch {
	case err == nil:
		return nil
	case statusOf(err) == http.StatusPreconditionFailed, errors.Is(err, bundle.ErrNotFound):
		return fmt.Errorf("read %s: %w: it was replaced while it was read", b.key, bundle.ErrUnavailable)
	}
	return fmt.Errorf("read %s: %w", b.key, err)
}

func (b *body) shut() {
	if b.r != nil {
		b.cancel(nil)
		_ = b.r.Close()
		b.r = nil
	}
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.shut()
	if b.err == nil {
		b.err = fmt.Errorf("read %s: %w", b.key, io.ErrClosedPipe)
	}
	return nil
}
