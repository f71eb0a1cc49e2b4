// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"iter"
	"strings"
)

// DirLister is an optional ability of a [Store]: to name what is directly below a
// prefix without reading everything that is below that.
type DirLister interface {
	// Dirs yields the names of the next segment of keys that begin with the prefix and
	// go on below it, each once, in no promised order. The prefix ends in "/".
	Dirs(ctx context.Context, prefix string) iter.Seq2[string, error]
}

// Dirs names what is directly below a prefix that ends in "/", by the store's own
// ability where it has it, else by listing everything.
func Dirs(ctx context.Context, s Store, prefix string) iter.Seq2[string, error] {
	if d, ok := s.(DirLister); ok {
		return d.Dirs(ctx, prefix)
	}
	return func(yield func(string, error) bool) {
		seen := map[string]bool{}
		for info, err := range s.List(ctx, prefix) {
			if err != nil {
				yield("", err)
				return
			}
			name, _, below := strings.Cut(strings.TrimPrefix(info.Key, prefix), "/")
			if !below || seen[name] {
				continue
			}
			seen[name] = true
			if !yield(name, nil) {
				return
			}
		}
	}
}

// ListRuns returns the ids of the runs that have a run.yaml, or are about to, in no
// promised order.
func ListRuns(ctx context.Context, s Store) iter.Seq2[string, error] {
	return Dirs(ctx, s, RunsPrefix)
}
