// SPDX-License-Identifier: Apache-2.0

package aggregator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/report"
)

// spool keeps reports in files until all are whole: nothing is uploaded of an
// aggregation that fails, and memory doesn't grow with them.
type spool struct {
	dir   string
	files []*spooled // in the order of their creation
}

type spooled struct {
	name string
	file *os.File
	*bufio.Writer
}

var _ report.Spool = (*spool)(nil)

func newSpool(parent string) (*spool, error) {
	dir, err := os.MkdirTemp(parent, "tidemill-aggregate-")
	if err != nil {
		return nil, fmt.Errorf("make room for reports: %w", err)
	}
	return &spool{dir: dir}, nil
}

// Create implements [report.Spool].
func (s *spool) Create(name string) (io.Writer, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make room for reports: %w", err)
	}
	out := &spooled{name, f, bufio.NewWriter(f)}
	s.files = append(s.files, out)
	return out, nil
}

// upload puts all reports, aggregate.json after those that it points at, and removes
// the sidecars of an earlier aggregation that nothing points at any more.
func (s *spool) upload(ctx context.Context, store bundle.Store, keys bundle.Keys) error {
	var there []string
	for _, f := range s.files {
		if err := f.upload(ctx, store, keys.Report(f.name)); err != nil {
			return fmt.Errorf("upload %s: %w", f.name, err)
		}
		there = append(there, f.name)
	}
	for _, name := range report.Sidecars {
		if slices.Contains(there, name) {
			continue
		}
		if err := store.Delete(ctx, keys.Report(name)); err != nil {
			return fmt.Errorf("remove the former %s: %w", name, err)
		}
	}
	return nil
}

func (f *spooled) upload(ctx context.Context, store bundle.Store, key string) error {
	if err := f.Flush(); err != nil {
		return err
	}
	size, err := f.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return store.Put(ctx, key, f.file, size)
}

// remove ends the spool. What goes wrong is of no consequence: the files are ours and
// temporary.
func (s *spool) remove() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.file.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
