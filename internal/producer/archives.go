// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/tidemill/tidemill/bundle"
)

// storeArchives puts packs and agent files that the store doesn't have.
func (p *Producer) storeArchives(ctx context.Context, d *Draft) error {
	for _, sha := range slices.Sorted(maps.Keys(d.archives)) {
		key := bundle.PackKey(sha)
		if r, err := p.Store.GetRange(ctx, key, 0, 0); err == nil {
			r.Close()
			continue
		} else if !errors.Is(err, bundle.ErrNotFound) {
			return fmt.Errorf("pack %s: %w", sha, err)
		}
		if err := p.putFile(ctx, key, d.archives[sha]); err != nil {
			return fmt.Errorf("pack %s: %w", sha, err)
		}
	}
	return nil
}

func (p *Producer) putFile(ctx context.Context, key, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return p.Store.Put(ctx, key, f, info.Size())
}
