// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Delete implements [bundle.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	name, err := s.writable(ctx, key)
	if err != nil {
		return err
	}
	if err := s.remove(ctx, name); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, name string) error {
	err := s.call(ctx, 0, func(ctx context.Context, o func(*s3.Options)) error {
		_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: s.bucket, Key: &name}, o)
		return err
	})
	if absent(err) {
		return nil
	}
	return s.explain(ctx, opDelete, err)
}
