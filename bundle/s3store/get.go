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

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tidemill/tidemill/bundle"
)

// Get implements [bundle.Store].
func (s *Store) Get(ctx context.Context, key string) (io.ReadCloser, bundle.Info, error) {
	for tries := 1; ; tries++ {
		b, info, err := s.get(ctx, key, 0, math.MaxInt64)
		if err != nil {
			return nil, bundle.Info{}, err
		}
		if info.Size > atOnce {
			return b, info, nil
		}
		r, err := readAll(b, info.Size)
		if errors.Is(err, errReplaced) && tries < resumes {
			continue
		}
		if err != nil {
			return nil, bundle.Info{}, err
		}
		return r, info, nil
	}
}

// atOnce is the size up to which an object is read when it is opened: most are records of
// a few hundred bytes, and one that was replaced meanwhile can be read from its start.
const atOnce = 256 << 10

func readAll(b *body, size int64) (io.ReadCloser, error) {
	defer b.Close()
	buf := make([]byte, size)
	if _, err := io.ReadFull(b, buf); err != nil {
		return nil, err
	}
	// The end tells whether a checksum fits.
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(buf)), nil
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
