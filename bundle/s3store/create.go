// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemill/tidemill/bundle"
)

// nonceName is the metadata under which a write keeps its nonce.
const nonceName = "tidemill-write"

// version joins what tells contents apart with what tells writes apart.
func version(etag *string, metadata map[string]string) bundle.Version {
	return bundle.Version(aws.ToString(etag) + "/" + metadata[nonceName])
}

// etagOf returns the entity tag in a version.
func etagOf(v bundle.Version) (string, bool) {
	i := strings.LastIndexByte(string(v), '/')
	if i < 0 {
		return "", false
	}
	return string(v[:i]), true
}

func newMetadata() map[string]string { return map[string]string{nonceName: rand.Text()} }

// Create implements [bundle.Store].
func (s *Store) Create(ctx context.Context, key string, body []byte) (bundle.Version, error) {
	name, err := s.writable(ctx, key)
	if err != nil {
		return "", err
	}
	v, err := s.putIf(ctx, opCreate, bundle.ErrExists, body, &s3.PutObjectInput{Key: &name, IfNoneMatch: aws.String("*")})
	if err != nil {
		return "", fmt.Errorf("create %s: %w", key, err)
	}
	return v, nil
}

// Swap implements [bundle.Store].
func (s *Store) Swap(ctx context.Context, key string, old bundle.Version, body []byte) (bundle.Version, error) {
	name, err := s.writable(ctx, key)
	if err != nil {
		return "", err
	}
	v, err := s.swap(ctx, name, old, body)
	if err != nil {
		return "", fmt.Errorf("swap %s: %w", key, err)
	}
	return v, nil
}

func (s *Store) swap(ctx context.Context, name string, old bundle.Version, body []byte) (bundle.Version, error) {
	if err := s.canSwap(ctx); err != nil {
		return "", err
	}
	now, err := s.versionOf(ctx, opSwap, name)
	if err != nil {
		return "", err
	}
	etag, ok := etagOf(old)
	if !ok || now != old {
		return "", bundle.ErrChanged
	}
	return s.putIf(ctx, opSwap, bundle.ErrChanged, body, &s3.PutObjectInput{Key: &name, IfMatch: &etag})
}

// errUnsure: the condition didn't hold, perhaps because an earlier attempt succeeded.
var errUnsure = errors.New("an answer was lost, and others have written since")

// putIf puts a small object on a condition, and returns refused where it doesn't hold.
func (s *Store) putIf(ctx context.Context, o op, refused error, body []byte, in *s3.PutObjectInput) (bundle.Version, error) {
	in.Bucket, in.Body, in.ContentLength, in.Metadata = s.bucket, bytes.NewReader(body), aws.Int64(int64(len(body))), newMetadata()
	var out *s3.PutObjectOutput
	r := s.request(int64(len(body)))
	err := r.do(ctx, func(ctx context.Context, o func(*s3.Options)) (err error) {
		out, err = s.client.PutObject(ctx, in, o)
		return err
	})
	if err == nil {
		return version(out.ETag, in.Metadata), nil
	}
	status := statusOf(err)
	// To a condition on a tag, services answer 404 where there is no object.
	if status != http.StatusPreconditionFailed && !(in.IfMatch != nil && absent(err)) {
		return "", s.explain(ctx, o, err)
	}
	if !r.unsure {
		return "", refused
	}
	// An earlier attempt may have been the one that was first.
	v, err := s.versionOf(ctx, o, *in.Key)
	if err != nil {
		return "", err
	}
	if v != "" && strings.HasSuffix(string(v), "/"+in.Metadata[nonceName]) {
		return v, nil
	}
	if in.IfMatch != nil {
		// Ours may have been replaced since: that nothing was changed would be a guess.
		return "", fmt.Errorf("%w: %w", bundle.ErrUnavailable, errUnsure)
	}
	return "", refused
}

// versionOf returns the version of an object, empty when there is none.
func (s *Store) versionOf(ctx context.Context, o op, name string) (bundle.Version, error) {
	var out *s3.HeadObjectOutput
	err := s.call(ctx, 0, func(ctx context.Context, o func(*s3.Options)) (err error) {
		out, err = s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: s.bucket, Key: &name}, o)
		return err
	})
	switch {
	case absent(err):
		return "", nil
	case err != nil:
		return "", s.explain(ctx, o, err)
	}
	return version(out.ETag, out.Metadata), nil
}

// absent says whether an answer means that there is no such object.
func absent(err error) bool {
	switch codeOf(err) {
	case "NoSuchKey", "NoSuchVersion", "ObjectParentIsFile":
		return true
	case "NotFound": // an answer without a body, as to HEAD
		return statusOf(err) == http.StatusNotFound
	}
	return false
}

// canSwap finds out, once, whether the service compares tags at all: one that ignores the
// condition would let every swap win.
func (s *Store) canSwap(ctx context.Context) error {
	s.swapMu.Lock()
	defer s.swapMu.Unlock()
	if s.swaps {
		return nil
	}
	name := s.prefix + "selftest/" + rand.Text()
	if _, err := s.putIf(ctx, opSwap, bundle.ErrExists, []byte("a"), &s3.PutObjectInput{Key: &name}); err != nil {
		return err
	}
	defer func() { _ = s.remove(context.WithoutCancel(ctx), name) }()
	// The tag of no object: a hash in the form that services give.
	never := `"00000000000000000000000000000000"`
	_, err := s.putIf(ctx, opSwap, bundle.ErrChanged, []byte("b"), &s3.PutObjectInput{Key: &name, IfMatch: &never})
	switch {
	case err == nil:
		return fmt.Errorf("%w: %s ignores If-Match and would replace what others have written", errors.ErrUnsupported, s.at())
	case !errors.Is(err, bundle.ErrChanged) && !errors.Is(err, errUnsure):
		return err
	}
	s.swaps = true
	return nil
}
