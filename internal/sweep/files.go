// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

// Files is a directory whose entries belong to attempts or to nobody: the spool, what is
// half unpacked. Only the process that holds the data directory's lock makes them, so that
// what is in there and not in use is a leftover. An entry's note, a file of the same name with
// .json behind it, is not listed beside it and goes with it.
type Files struct {
	// Kind of what is in there, one word: "spool".
	Kind string
	Dir  string
	// Store is whose they are.
	Store string
	// Match chooses among the entries; nil takes all.
	Match func(name string) bool
	// InUse tells which belong to something that lives; nil is none.
	InUse func(name string) bool
}

const noteSuffix = ".json"

var _ Place = Files{}

// List returns the entries. A directory that isn't there has none.
func (f Files) List(context.Context) ([]runtime.Resource, error) {
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", f.Kind, err)
	}
	named := map[string]bool{}
	for _, e := range entries {
		named[e.Name()] = true
	}
	var list []runtime.Resource
	for _, e := range entries {
		if of, ok := strings.CutSuffix(e.Name(), noteSuffix); ok && named[of] {
			continue
		}
		if f.Match != nil && !f.Match(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // gone meanwhile
		}
		r := runtime.Resource{
			Handle: runtime.Handle{Kind: f.Kind, ID: filepath.Join(f.Dir, e.Name())},
			Name:   e.Name(), Labels: runtime.Labels{Store: f.Store}, Created: info.ModTime(),
		}
		r.Live = f.InUse != nil && f.InUse(e.Name())
		if trial, n, ok := strings.Cut(e.Name(), "."); ok { // a bundle is named by its attempt
			if attempt, err := strconv.Atoi(n); err == nil {
				r.Labels.Trial, r.Labels.Attempt = trial, attempt
			}
		}
		list = append(list, r)
	}
	return list, nil
}

// Destroy removes an entry, unless it has come into use. A symlink is removed and not
// followed.
func (f Files) Destroy(_ context.Context, h runtime.Handle) error {
	name := filepath.Base(h.ID)
	if h.Kind != f.Kind || filepath.Dir(h.ID) != filepath.Clean(f.Dir) || name == "." || name == ".." {
		return fmt.Errorf("destroy %s %s: not in %s", h.Kind, h.ID, f.Dir)
	}
	if f.InUse != nil && f.InUse(name) {
		return nil
	}
	if err := os.RemoveAll(h.ID); err != nil {
		return err
	}
	if err := os.Remove(h.ID + noteSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Unpacking chooses, in a cache of packs, what was not unpacked to its end.
func Unpacking(name string) bool { return strings.HasPrefix(name, ".") }
