// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/bundle"
)

// A bundle that found no room for its index is evidence all the same: what there is of it
// is sealed later, when it is sent.

// readIndex returns the index of a bundle that is kept here. One without is sealed as it
// stands; an index that was written in part is none.
func readIndex(dir string) (bundle.Index, error) {
	path := filepath.Join(dir, bundle.IndexName)
	body, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return bundle.Index{}, err
	}
	if err == nil {
		if ix, err := bundle.ParseIndex(body); err == nil {
			return ix, nil
		}
	}
	ix, err := indexOf(dir)
	if err != nil {
		return bundle.Index{}, fmt.Errorf("seal it as it stands: %w", err)
	}
	if body, err = bundle.EncodeRecord(ix); err != nil {
		return bundle.Index{}, err
	}
	// Beside the bundle, where it is no file of it if this is as far as we come.
	if err := os.WriteFile(dir+unsentSuffix+".index", body, 0o666); err != nil {
		return bundle.Index{}, errors.Join(err, os.Remove(dir+unsentSuffix+".index"))
	}
	if err := os.Rename(dir+unsentSuffix+".index", path); err != nil {
		return bundle.Index{}, err
	}
	return bundle.ParseIndex(body)
}

// indexOf lists the files of a bundle's directory. Names that were shortened stay so.
func indexOf(dir string) (bundle.Index, error) {
	ix := bundle.Index{SchemaVersion: bundle.SchemaVersion, Files: []bundle.IndexEntry{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == bundle.IndexName {
			return err
		}
		// Parts of long segments end in a +, which no escaped name has; see bundle.LocalPath.
		entry := bundle.IndexEntry{Path: strings.ReplaceAll(filepath.ToSlash(name), "+/", "")}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		sum := sha256.New()
		entry.Size, err = io.Copy(sum, f)
		entry.SHA256 = hex.EncodeToString(sum.Sum(nil))
		ix.Files = append(ix.Files, entry)
		return err
	})
	slices.SortFunc(ix.Files, func(a, b bundle.IndexEntry) int { return strings.Compare(a.Path, b.Path) })
	return ix, err
}
