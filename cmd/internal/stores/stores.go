// SPDX-License-Identifier: Apache-2.0

// Package stores chooses the implementation of a store by its URL.
package stores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/cmd/internal/app"
)

// Help is how a --store flag explains itself.
const Help = "store of results: a directory, or file:///PATH"

// Open opens a store: a directory, also written as a file URL.
func Open(_ context.Context, where string) (bundle.Store, error) {
	return open(where, dirstore.Options{})
}

func open(where string, opts dirstore.Options) (bundle.Store, error) {
	dir, ok := Directory(where)
	if !ok {
		return nil, app.Usage(unknownURL(where))
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, app.Usage(fmt.Errorf("store %s: is a file, want a directory", where))
	}
	return dirstore.Open(dir, opts)
}

// unknownURL says what is wrong with what names no store.
func unknownURL(where string) error {
	u, err := url.Parse(where)
	switch {
	case where == "":
		return errors.New("no store given; name a directory or file:///PATH")
	case err != nil:
		// What can't be read may have a password in it.
		return errors.New("--store can't be read: want a directory or file:///PATH")
	case u.Scheme == "file":
		return fmt.Errorf("store %q: a file URL has three slashes and an absolute path: file:///PATH", where)
	}
	return fmt.Errorf("store %q: no store for %s:// URLs; this version knows directories and file:///PATH", u.Redacted(), u.Scheme)
}

// OpenForWriting opens a store, tests that it decides races, and reads or makes its
// identity.
func OpenForWriting(ctx context.Context, where string) (bundle.Store, bundle.StoreRecord, error) {
	s, err := Open(ctx, where)
	if err != nil {
		return nil, bundle.StoreRecord{}, err
	}
	rec, err := bundle.OpenIdentity(ctx, s)
	if err == nil {
		err = bundle.SelfTest(ctx, s)
	}
	if err != nil {
		s.Close()
		return nil, rec, fmt.Errorf("store %s: %w", s.URL(), err)
	}
	return s, rec, nil
}

// OpenExisting opens a store that was written to before, for reading: a full or
// write-protected disk is no obstacle.
func OpenExisting(ctx context.Context, where string) (bundle.Store, error) {
	return openExisting(ctx, where, dirstore.Options{ReadOnly: true})
}

// OpenForReports opens a store that was written to before, to put reports beside what
// is there.
func OpenForReports(ctx context.Context, where string) (bundle.Store, error) {
	return openExisting(ctx, where, dirstore.Options{})
}

func openExisting(ctx context.Context, where string, opts dirstore.Options) (bundle.Store, error) {
	if path, ok := Directory(where); ok {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, app.Usage(app.Hint(fmt.Errorf("store %s: there is no such directory", where), elsewhere))
		}
	}
	s, err := open(where, opts)
	if err != nil {
		return nil, err
	}
	if _, err := bundle.ReadIdentity(ctx, s); err != nil {
		s.Close()
		if errors.Is(err, bundle.ErrNotFound) {
			return nil, app.Usage(app.Hint(fmt.Errorf("%s is not a tidemill store: it has no %s", where, bundle.StoreKey), elsewhere))
		}
		return nil, err
	}
	return s, nil
}

const elsewhere = "name the directory that tidemill run --data had; without --data it is results in the working directory"

// Directory returns the path of a store that is a directory.
func Directory(where string) (string, bool) {
	if !strings.Contains(where, "://") {
		return where, where != ""
	}
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "file" || u.Host != "" || u.Path == "" {
		return "", false
	}
	return u.Path, true
}

// Join names an object for people: a path where the store is a directory, relative to
// the working directory where that is shorter, else a URL.
func Join(storeURL, key string) string {
	path, ok := Directory(storeURL)
	if !ok {
		return strings.TrimSuffix(storeURL, "/") + "/" + key
	}
	full := filepath.Join(path, filepath.FromSlash(key))
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, full); err == nil && len(rel) < len(full) {
			return rel
		}
	}
	return full
}
