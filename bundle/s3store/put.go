// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Put implements [bundle.Store]. What is not larger than a part goes in one request,
// everything else in parts. A part of a reader that can't seek is held in memory, of a
// file nothing is.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	name, err := s.writable(ctx, key)
	if err != nil {
		return err
	}
	src, err := s.newSource(r, size)
	if err == nil {
		err = s.put(ctx, name, src)
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return nil
}

func (s *Store) put(ctx context.Context, name string, src source) error {
	first, err := src.next(ctx)
	if err != nil {
		return err
	}
	if !first.last {
		return s.upload(ctx, name, first, src)
	}
	defer first.done()
	if err := ctx.Err(); err != nil {
		return err
	}
	in := &s3.PutObjectInput{Bucket: s.bucket, Key: &name, Body: first, ContentLength: &first.size, Metadata: newMetadata()}
	err = s.call(ctx, first.size, func(ctx context.Context, o func(*s3.Options)) error {
		_, err := s.client.PutObject(ctx, in, o)
		return err
	})
	return s.explain(ctx, opPut, err)
}
