// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemill/tidemill/bundle"
)

// List implements [bundle.Store]. It holds a page of 1000 names at most.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[bundle.Info, error] {
	return func(yield func(bundle.Info, error) bool) {
		if err := bundle.CheckPrefix(prefix); err != nil {
			yield(bundle.Info{}, err)
			return
		}
		for page, err := range s.pages(ctx, s.prefix+spell(prefix), "") {
			if err != nil {
				yield(bundle.Info{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			for _, o := range page.Contents {
				key, ok := unspell(strings.TrimPrefix(aws.ToString(o.Key), s.prefix))
				// What a stranger put here may have a name that no key has.
				if !ok || !strings.HasPrefix(key, prefix) {
					continue
				}
				if !yield(bundle.Info{Key: key, Size: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified)}, nil) {
					return
				}
			}
		}
	}
}

// pages yields a listing page by page, until an error.
func (s *Store) pages(ctx context.Context, prefix, delimiter string) iter.Seq2[*s3.ListObjectsV2Output, error] {
	return func(yield func(*s3.ListObjectsV2Output, error) bool) {
		in := &s3.ListObjectsV2Input{Bucket: s.bucket, Prefix: &prefix}
		if delimiter != "" {
			in.Delimiter = &delimiter
		}
		for {
			var out *s3.ListObjectsV2Output
			err := ctx.Err()
			if err == nil {
				err = s.call(ctx, 0, func(ctx context.Context, o func(*s3.Options)) (err error) {
					out, err = s.client.ListObjectsV2(ctx, in, o)
					return err
				})
			}
			if err != nil {
				yield(nil, s.explain(ctx, opList, err))
				return
			}
			if !yield(out, nil) || !aws.ToBool(out.IsTruncated) {
				return
			}
			next := aws.ToString(out.NextContinuationToken)
			if next == "" || next == aws.ToString(in.ContinuationToken) {
				yield(nil, errors.New("the listing goes on, but where it does isn't said"))
				return
			}
			in.ContinuationToken = &next
		}
	}
}

var _ bundle.DirLister = (*Store)(nil)

// Dirs implements [bundle.DirLister]: the service groups names up to the next slash.
func (s *Store) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		err := bundle.CheckPrefix(prefix)
		if err == nil && prefix != "" && !strings.HasSuffix(prefix, "/") {
			err = fmt.Errorf("%w: prefix %q: want a / at its end", bundle.ErrInvalidKey, prefix)
		}
		if err == nil {
			_, err = s.dirs(ctx, s.prefix+spell(prefix), "", yield)
		}
		if err != nil {
			yield("", fmt.Errorf("list directories %q: %w", prefix, err))
		}
	}
}

// dirs yields the names below a spelled prefix. Begun is what a long name began with in
// the prefix. It reports whether the caller wants more.
func (s *Store) dirs(ctx context.Context, prefix, begun string, yield func(string, error) bool) (more bool, err error) {
	for page, err := range s.pages(ctx, prefix, "/") {
		if err != nil {
			return false, err
		}
		for _, p := range page.CommonPrefixes {
			spelled := strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), prefix), "/")
			name := begun + strings.TrimSuffix(spelled, "+")
			if bundle.CheckKey(name) != nil {
				continue
			}
			if strings.HasSuffix(spelled, "+") {
				if !strings.HasSuffix(spell(name+"x"), "+/x") {
					continue // not where a long name is cut
				}
				if more, err := s.dirs(ctx, prefix+spelled+"/", name, yield); err != nil || !more {
					return more, err
				}
				continue
			}
			if !yield(name, nil) {
				return false, nil
			}
		}
	}
	return true, nil
}
