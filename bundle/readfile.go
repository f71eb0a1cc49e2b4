// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// ReadIndex reads the index of a bundle below a prefix.
func ReadIndex(ctx context.Context, s Store, prefix string) (Index, error) {
	body, err := ReadObject(ctx, s, prefix+IndexName, maxRecord)
	if err != nil {
		return Index{}, fmt.Errorf("bundle index: %w", err)
	}
	ix, err := ParseIndex(body)
	if err != nil {
		return Index{}, fmt.Errorf("bundle index: %s%s: %w", prefix, IndexName, err)
	}
	return ix, nil
}

// OpenFile opens a file of a bundle. Where its bytes are not what the index says, reading
// ends with a [MismatchError] in the place of io.EOF: until then nothing is proven.
func OpenFile(ctx context.Context, s Store, prefix string, e IndexEntry) (io.ReadCloser, error) {
	r, _, err := s.Get(ctx, prefix+e.Path)
	if errors.Is(err, ErrNotFound) {
		return nil, &MismatchError{Path: e.Path, Problem: "is missing"}
	}
	if err != nil {
		return nil, fmt.Errorf("bundle file %s: %w", e.Path, err)
	}
	return &checkedFile{ReadCloser: r, entry: e, sum: sha256.New()}, nil
}

type checkedFile struct {
	io.ReadCloser
	entry IndexEntry
	sum   hash.Hash
	n     int64
}

func (f *checkedFile) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	f.sum.Write(p[:n])
	f.n += int64(n)
	switch {
	case f.n > f.entry.Size, errors.Is(err, io.EOF) && f.n != f.entry.Size:
		return n, &MismatchError{Path: f.entry.Path, Problem: fmt.Sprintf("%d bytes so far, the index says %d", f.n, f.entry.Size)}
	case errors.Is(err, io.EOF):
		if got := hex.EncodeToString(f.sum.Sum(nil)); got != f.entry.SHA256 {
			return n, &MismatchError{Path: f.entry.Path, Problem: fmt.Sprintf("sha256 %s, the index says %s", got, f.entry.SHA256)}
		}
	}
	return n, err
}
