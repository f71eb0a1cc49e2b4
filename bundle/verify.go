// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MismatchError names the first file that isn't what the index says.
type MismatchError struct {
	Path    string
	Problem string
}

func (e *MismatchError) Error() string { return fmt.Sprintf("bundle file %s: %s", e.Path, e.Problem) }

// Verify reads a whole bundle below a prefix and compares it with its index: every
// file with the right bytes, and no other. Compare the index's SHA256 with that of the
// commit to know that it is the one that was committed.
func Verify(ctx context.Context, s Store, prefix string) (Index, error) {
	body, err := ReadObject(ctx, s, prefix+IndexName, maxRecord)
	if err != nil {
		return Index{}, fmt.Errorf("verify bundle: %w", err)
	}
	ix, err := ParseIndex(body)
	if err != nil {
		return Index{}, fmt.Errorf("verify bundle: %s%s: %w", prefix, IndexName, err)
	}
	for _, e := range ix.Files {
		if err := verifyFile(ctx, s, prefix, e); err != nil {
			return ix, err
		}
	}
	extra := ""
	for info, err := range s.List(ctx, prefix) {
		if err != nil {
			return ix, fmt.Errorf("verify bundle: %w", err)
		}
		path := strings.TrimPrefix(info.Key, prefix)
		if _, ok := ix.Find(path); !ok && path != IndexName && (extra == "" || path < extra) {
			extra = path
		}
	}
	if extra != "" {
		return ix, &MismatchError{Path: extra, Problem: "is not in the index"}
	}
	return ix, nil
}

func verifyFile(ctx context.Context, s Store, prefix string, e IndexEntry) error {
	r, _, err := s.Get(ctx, prefix+e.Path)
	if errors.Is(err, ErrNotFound) {
		return &MismatchError{Path: e.Path, Problem: "is missing"}
	}
	if err != nil {
		return fmt.Errorf("verify bundle: %w", err)
	}
	defer r.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	if err != nil {
		return fmt.Errorf("verify bundle: read %s: %w", e.Path, err)
	}
	if n != e.Size {
		return &MismatchError{Path: e.Path, Problem: fmt.Sprintf("%d bytes, the index says %d", n, e.Size)}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != e.SHA256 {
		return &MismatchError{Path: e.Path, Problem: fmt.Sprintf("sha256 %s, the index says %s", got, e.SHA256)}
	}
	return nil
}
