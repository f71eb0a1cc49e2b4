// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/tidemill/tidemill/bundle"
)

// storeArchives puts packs and agent files that the store doesn't have.
func (p *Producer) storeArchives(ctx context.Context, d *Draft) error {
	for _, sha := range slices.Sorted(maps.Keys(d.archives)) {
		if err := p.storeArchive(ctx, bundle.PackKey(sha), d.archives[sha]); err != nil {
			return fmt.Errorf("pack %s: %w", sha, err)
		}
	}
	return nil
}

// storeArchive puts an archive unless the same bytes are there. They are compared: a
// damaged one would spoil every trial, and the right one is at hand.
func (p *Producer) storeArchive(ctx context.Context, key, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	stored, _, err := p.Store.Get(ctx, key)
	switch {
	case err == nil:
		same, err := sameBytes(stored, f)
		stored.Close()
		if same || err != nil {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	case !errors.Is(err, bundle.ErrNotFound):
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return p.Store.Put(ctx, key, f, info.Size())
}

// sameBytes reports whether two streams are alike. What can't be read of the first is
// not alike.
func sameBytes(stored, file io.Reader) (bool, error) {
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(stored, a)
		m, errB := io.ReadFull(file, b)
		if errB != nil && !errors.Is(errB, io.EOF) && !errors.Is(errB, io.ErrUnexpectedEOF) {
			return false, errB
		}
		if !bytes.Equal(a[:n], b[:m]) {
			return false, nil
		}
		if errA != nil || errB != nil {
			return errors.Is(errA, io.EOF) || errors.Is(errA, io.ErrUnexpectedEOF), nil
		}
	}
}
