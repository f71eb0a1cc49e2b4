// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tidemill/tidemill/bundle"
)

// maxPrefix is what 1024 bytes of an object's name leave beside the longest key and what
// its spelling adds.
const maxPrefix = 100

// spell is how a key, or the beginning of one, is spelled in the bucket.
func spell(key string) string { return filepath.ToSlash(bundle.LocalPath(key)) }

// unspell undoes it. What isn't spelled like that is no object of ours.
func unspell(name string) (key string, ok bool) {
	key = strings.ReplaceAll(name, "+/", "")
	return key, bundle.CheckKey(key) == nil && spell(key) == name
}

// name returns the object's name, unless the call must not have any effect.
func (s *Store) name(ctx context.Context, key string) (string, error) {
	if err := bundle.CheckKey(key); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	return s.prefix + spell(key), nil
}

// writable is name for calls that change something.
func (s *Store) writable(ctx context.Context, key string) (string, error) {
	name, err := s.name(ctx, key)
	if err == nil && s.readOnly {
		return "", fmt.Errorf("%s: the store was opened for reading only: %w", key, bundle.ErrDenied)
	}
	return name, err
}
