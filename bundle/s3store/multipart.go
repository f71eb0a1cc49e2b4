// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

const (
	// partsAtOnce of one object are on their way up.
	partsAtOnce = 3
	// abortTime is how long throwing an upload away may take.
	abortTime = 30 * time.Second
	// aborts is how often that is tried at most.
	aborts = 3
)

// upload is an object that goes up in parts.
type upload struct {
	s        *Store
	name     string
	id       *string
	metadata map[string]string

	mu    sync.Mutex
	parts map[int32]types.CompletedPart
	size  int64
}

// upload puts what is larger than a part. Nobody sees any of it before all is there.
func (s *Store) upload(ctx context.Context, name string, first part, src source) error {
	u := &upload{s: s, name: name, metadata: newMetadata(), parts: map[int32]types.CompletedPart{}}
	if err := u.begin(ctx); err != nil {
		first.done()
		return err
	}
	err := u.send(ctx, first, src)
	if err == nil {
		err = u.complete(ctx)
	}
	if err != nil {
		u.abort(ctx)
	}
	return err
}

// checksum is that of parts, which has to be announced; empty where there is none.
func (u *upload) checksum() types.ChecksumAlgorithm {
	if u.s.client.Options().RequestChecksumCalculation == aws.RequestChecksumCalculationWhenSupported {
		return types.ChecksumAlgorithmCrc32
	}
	return ""
}

func (u *upload) begin(ctx context.Context) error {
	in := &s3.CreateMultipartUploadInput{Bucket: u.s.bucket, Key: &u.name, Metadata: u.metadata, ChecksumAlgorithm: u.checksum()}
	err := u.s.call(ctx, 0, func(ctx context.Context, o func(*s3.Options)) error {
		out, err := u.s.client.CreateMultipartUpload(ctx, in, o)
		if err == nil {
			u.id = out.UploadId
		}
		return err
	})
	return u.s.explain(ctx, opPut, err)
}

// send cuts parts one after the other, and sends some at once. After the first thing that
// goes wrong no more are cut; those that are on their way go on, because a service may
// keep a part that it takes while the upload is thrown away.
func (u *upload) send(ctx context.Context, first part, src source) error {
	g, cutting := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce + 1) // and who cuts
	g.Go(func() error {
		p := first
		for number := int32(1); ; number++ {
			sent := p
			if err := cutting.Err(); err != nil {
				sent.done()
				return err
			}
			u.size += sent.size
			g.Go(func() error {
				defer sent.done()
				return u.part(ctx, number, sent)
			})
			if sent.last {
				return nil
			}
			if number == maxParts {
				return fmt.Errorf("%d parts of %d bytes are not enough: put a file, which is cut by its size", maxParts, u.s.opts.PartSize)
			}
			var err error
			if p, err = src.next(cutting); err != nil {
				return err
			}
		}
	})
	return g.Wait()
}

func (u *upload) part(ctx context.Context, number int32, p part) error {
	in := &s3.UploadPartInput{
		Bucket: u.s.bucket, Key: &u.name, UploadId: u.id, PartNumber: &number,
		Body: p, ContentLength: &p.size, ChecksumAlgorithm: u.checksum(),
	}
	var out *s3.UploadPartOutput
	err := u.s.call(ctx, p.size, func(ctx context.Context, o func(*s3.Options)) (err error) {
		out, err = u.s.client.UploadPart(ctx, in, o)
		return err
	})
	if err != nil {
		return u.s.explain(ctx, opPut, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.parts[number] = types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}
	return nil
}

// complete makes an object of the parts. A service may take long for that, as it may copy
// them all.
func (u *upload) complete(ctx context.Context) error {
	parts := make([]types.CompletedPart, len(u.parts))
	for number, p := range u.parts {
		parts[number-1] = p
	}
	in := &s3.CompleteMultipartUploadInput{
		Bucket: u.s.bucket, Key: &u.name, UploadId: u.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}
	r := u.s.request(u.size)
	err := r.do(ctx, func(ctx context.Context, o func(*s3.Options)) error {
		_, err := u.s.client.CompleteMultipartUpload(ctx, in, o)
		return err
	})
	// An answer may have been lost: then the upload is gone, and the object there.
	if r.unsure && codeOf(err) == "NoSuchUpload" {
		v, headErr := u.s.versionOf(ctx, opPut, u.name)
		if headErr == nil && strings.HasSuffix(string(v), "/"+u.metadata[nonceName]) {
			return nil
		}
	}
	return u.s.explain(ctx, opPut, err)
}

// abort throws the parts away, although the caller may have given up: in that case the
// service may still be at work on some, so it is asked until it knows of no such upload.
func (u *upload) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	for range aborts {
		err := u.s.call(ctx, 0, func(ctx context.Context, o func(*s3.Options)) error {
			_, err := u.s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: u.s.bucket, Key: &u.name, UploadId: u.id}, o)
			return err
		})
		if err != nil {
			return // gone, or for the bucket's lifecycle rule
		}
	}
}
