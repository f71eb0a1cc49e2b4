// SPDX-License-Identifier: Apache-2.0

package s3store

import (
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

// resumes is how often a body is asked for again, without a byte coming, before its
// reader is told.
const resumes = 4

// errReplaced: the object that was being read is no longer there.
var errReplaced = errors.New("it was replaced while it was read, and broke off")

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
		// Some gateway's page that says "not found" is no word of the store.
		if absent(err) && codeOf(err) != "NotFound" {
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
		return fmt.Errorf("read %s: %w: %w", b.key, bundle.ErrUnavailable, errReplaced)
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
