// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"fmt"
	"slices"
)

// IndexName is the file that lists the others. It doesn't list itself.
const IndexName = "index.json"

// Index is index.json: what a sealed bundle consists of.
type Index struct {
	SchemaVersion int          `json:"schema_version"`
	Files         []IndexEntry `json:"files"` // by path
	// SHA256 is that of index.json as it was read, which is what a commit holds.
	SHA256 string `json:"-"`
}

// IndexEntry is a file of a bundle.
type IndexEntry struct {
	Path   string `json:"path"` // relative to the attempt's files, escaped; see [EscapeName]
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Name is set if the path had to be shortened: the path that it would have been.
	Name string `json:"name,omitempty"`
}

// RealName returns the name that the file was given, unescaped.
func (e IndexEntry) RealName() (string, error) { return UnescapeName(cmp.Or(e.Name, e.Path)) }

// ParseIndex reads index.json and refuses one that no writer of bundles would have
// written.
func ParseIndex(body []byte) (Index, error) {
	ix, err := DecodeRecord[Index](body)
	if err != nil {
		return Index{}, err
	}
	for i, e := range ix.Files {
		if err := e.check(); err != nil {
			return Index{}, err
		}
		if i > 0 && cmp.Compare(ix.Files[i-1].Path, e.Path) >= 0 {
			return Index{}, fmt.Errorf("file %q: want each path once, in order", e.Path)
		}
	}
	ix.SHA256 = hexSum(body)
	return ix, nil
}

// Find returns the entry of a path.
func (ix Index) Find(path string) (IndexEntry, bool) {
	i, ok := slices.BinarySearchFunc(ix.Files, path, func(e IndexEntry, p string) int { return cmp.Compare(e.Path, p) })
	if !ok {
		return IndexEntry{}, false
	}
	return ix.Files[i], true
}

func (e IndexEntry) check() error {
	switch err := CheckKey(e.Path); {
	case err != nil:
		return fmt.Errorf("path of a file: %w", err)
	case e.Path == IndexName:
		return fmt.Errorf("%s lists itself", IndexName)
	case e.Name != "" && (e.Name == e.Path || shortenName(e.Name) != e.Path):
		return fmt.Errorf("file %q: its name %.200q has another path", e.Path, e.Name)
	case e.Size < 0:
		return fmt.Errorf("file %q: size %d is negative", e.Path, e.Size)
	case !isHex(e.SHA256, 64):
		return fmt.Errorf("file %q: sha256 %.80q, want 64 hex characters", e.Path, e.SHA256)
	}
	return nil
}
