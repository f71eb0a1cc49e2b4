// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemill/tidemill/bundle"
)

// Store is a bundle store in a bucket. Any number of processes may have it open.
type Store struct {
	client    *s3.Client
	transport *http.Transport
	retryer   aws.RetryerV2
	opts      Options // completed, with what the AWS tools decided
	bucket    *string
	prefix    string // of objects' names: empty, or with a slash at its end
	readOnly  bool
	// buffers bounds the memory for parts; what was used before is used again.
	buffers *buffers

	swapMu sync.Mutex
	swaps  bool // known to compare; see canSwap
}

var _ bundle.Store = (*Store)(nil)

// Open opens the store in a bucket, and finds out with one request whether bucket,
// credentials and clock are right: the error says what is wrong and what would be right.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := connect(ctx, opts.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("open store s3://%s: %w", opts.Bucket, err)
	}
	if err := s.look(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open store %s: %w", s.URL(), err)
	}
	return s, nil
}

// look asks for one name, which needs what every other call needs: an answer, a bucket,
// credentials and a clock.
func (s *Store) look(ctx context.Context) error {
	if err := s.haveCredentials(ctx); err != nil {
		return err
	}
	err := s.listOne(ctx)
	if s.opts.CreateBucket && !s.readOnly && codeOf(err) == "NoSuchBucket" {
		if err := s.createBucket(ctx); err != nil {
			return err
		}
		err = s.listOne(ctx)
	}
	if code := codeOf(err); statusOf(err) == http.StatusNotFound && (code == "" || code == "NotFound") {
		return fmt.Errorf("what answers at %s doesn't speak S3: look at the endpoint: %w", s.at(), answer(http.StatusNotFound, err))
	}
	return s.explain(ctx, opList, err)
}

func (s *Store) listOne(ctx context.Context) error {
	return s.call(ctx, 0, func(ctx context.Context, o func(*s3.Options)) error {
		_, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: s.bucket, Prefix: &s.prefix, MaxKeys: aws.Int32(1)}, o)
		return err
	})
}

// URL implements [bundle.Store].
func (s *Store) URL() string { return s.opts.URL() }

// Close implements [bundle.Store]: it gives idle connections back.
func (s *Store) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}
