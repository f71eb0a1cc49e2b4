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
	"github.com/tidemill/tidemill/bundle/s3store"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/version"
)

// Help is how a --store flag explains itself.
const Help = "store of results: a directory, file:///PATH, or " + s3store.Form

// mode is what a store is opened for.
type mode int

const (
	writing mode = iota
	reading
)

// Open opens a store: a directory, also written as a file URL, or a bucket.
func Open(ctx context.Context, where string) (bundle.Store, error) { return open(ctx, where, writing) }

func open(ctx context.Context, where string, m mode) (bundle.Store, error) {
	if isBucket(where) {
		opts, err := s3store.Parse(where)
		if err != nil {
			return nil, app.Usage(err)
		}
		opts.ReadOnly, opts.Version = m == reading, version.String()
		s, err := s3store.Open(ctx, opts)
		if err != nil {
			return nil, err // no typed nil
		}
		return s, nil
	}
	dir, ok := Directory(where)
	if !ok {
		return nil, app.Usage(unknownURL(where))
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, app.Usage(fmt.Errorf("store %s: is a file, want a directory", where))
	}
	s, err := dirstore.Open(dir, dirstore.Options{ReadOnly: m == reading})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func isBucket(where string) bool { return strings.HasPrefix(where, "s3:") }

// unknownURL says what is wrong with what names no store.
func unknownURL(where string) error {
	u, err := url.Parse(where)
	switch {
	case where == "":
		return errors.New("no store given; name a directory, file:///PATH, or " + s3store.Form)
	case err != nil:
		// What can't be read may have a password in it.
		return errors.New("--store can't be read: want a directory, file:///PATH, or " + s3store.Form)
	case u.Scheme == "file":
		return fmt.Errorf("store %q: a file URL has three slashes and an absolute path: file:///PATH", where)
	}
	return fmt.Errorf("no store for %s:// URLs; this version knows directories, file:///PATH, and %s", u.Scheme, s3store.Form)
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
		return nil, rec, err // which names the store
	}
	return s, rec, nil
}

// OpenExisting opens a store that was written to before, for reading: a full or
// write-protected disk is no obstacle, nor are credentials that may only read.
func OpenExisting(ctx context.Context, where string) (bundle.Store, error) {
	return openExisting(ctx, where, reading)
}

// OpenForReports opens a store that was written to before, to put reports beside what
// is there.
func OpenForReports(ctx context.Context, where string) (bundle.Store, error) {
	return openExisting(ctx, where, writing)
}

func openExisting(ctx context.Context, where string, m mode) (bundle.Store, error) {
	hint := elsewhere(where)
	if path, ok := Directory(where); ok {
		entries, err := os.ReadDir(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, app.Usage(app.Hint(fmt.Errorf("store %s: there is no such directory", where), "%s", hint))
		}
		if err == nil && len(entries) == 0 {
			return nil, app.Usage(app.Hint(fmt.Errorf("store %s is an empty directory: nothing was run or submitted into it yet", where), "%s", hint))
		}
	}
	s, err := open(ctx, where, m)
	if err != nil {
		return nil, err
	}
	if _, err := bundle.ReadIdentity(ctx, s); err != nil {
		name := where
		if isBucket(where) {
			name = s.URL()
		}
		s.Close()
		if errors.Is(err, bundle.ErrNotFound) {
			return nil, app.Usage(app.Hint(fmt.Errorf("%s is not a tidemill store: it has no %s", name, bundle.StoreKey), "%s", hint))
		}
		return nil, err
	}
	return s, nil
}

// elsewhere says where else a store may be that isn't where it was looked for.
func elsewhere(where string) string {
	if isBucket(where) {
		return "name bucket and prefix as tidemill submit and tidemill worker had them"
	}
	hint := "name the directory that tidemill run --data had; without --data it is " + local.DefaultDir + " in the working directory"
	variable := app.EnvName("store")
	if value, set := os.LookupEnv(variable); set && value == "" && where == local.DefaultDir {
		hint = variable + " is set and empty, which counts as not set; " + hint
	}
	return hint
}

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
		// What follows the ? says how to get there, not where.
		storeURL, _, _ = strings.Cut(storeURL, "?")
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
