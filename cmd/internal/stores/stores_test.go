// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
)

// usage checks that an error is bad input and says something.
func usage(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v; want %q in it", err, want)
	}
	if ce, ok := errors.AsType[*app.CodeError](err); !ok || ce.Code != app.ExitUsage {
		t.Errorf("error %v is not marked as bad input", err)
	}
}

func TestWhatNamesNoStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for where, want := range map[string]string{
		"":                               "no store given",
		"s3://user:secret@bucket/prefix": "has a user or password in it",
		"s3://bucket?access_key=secret":  "has credentials in it",
		"s3:bucket":                      "want s3://BUCKET/PREFIX",
		"ftp://user:secret@host":         "no store for ftp:// URLs",
		"https://user:secret@host/store": "no store for https:// URLs",
		"file://relative/path":           "three slashes",
		"file://":                        "three slashes",
		"://":                            "want a directory, file:///PATH, or s3://BUCKET",
		"s3://user:secret@host:%":        "can't be read: want s3://BUCKET/PREFIX",
		"file://%zz":                     "want a directory, file:///PATH, or s3://BUCKET",
		file:                             "is a file, want a directory",
		"file://" + file:                 "is a file, want a directory",
	} {
		s, err := Open(t.Context(), where)
		if err == nil {
			s.Close()
		}
		usage(t, err, want)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q has the password in it", err)
		}
	}
}

func TestOpenForWritingAndAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, made, err := OpenForWriting(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, again, err := OpenForWriting(t.Context(), "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	if again.StoreUUID != made.StoreUUID || made.StoreUUID == "" {
		t.Errorf("uuid %q, then %q; want the same", made.StoreUUID, again.StoreUUID)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenExisting(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Looking for a store makes none.
func TestOpenExistingMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nowhere")
	_, err := OpenExisting(t.Context(), dir)
	usage(t, err, "there is no such directory")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("now there is one")
	}
	empty := t.TempDir()
	_, err = OpenExisting(t.Context(), empty)
	usage(t, err, "is an empty directory: nothing was run or submitted into it yet")
	if err := os.WriteFile(filepath.Join(empty, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = OpenExisting(t.Context(), empty)
	usage(t, err, "is not a tidemill store: it has no store.json")
}

func TestDirectory(t *testing.T) {
	for where, want := range map[string]string{
		"results": "results", "/var/evals": "/var/evals", "file:///var/evals": "/var/evals",
		"": "", "s3://bucket": "", "file://host/path": "", "file://": "",
	} {
		if got, ok := Directory(where); got != want || ok != (want != "") {
			t.Errorf("Directory(%q) = %q, %t; want %q", where, got, ok, want)
		}
	}
}

func TestJoin(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"file://" + wd + "/results": "results/runs/r/aggregate.json",
		"file:///":                  "/runs/r/aggregate.json",
		"s3://bucket/prefix/":       "s3://bucket/prefix/runs/r/aggregate.json",
		"s3://bucket/p?endpoint=http://127.0.0.1:9000": "s3://bucket/p/runs/r/aggregate.json",
	} {
		if got := Join(url, "runs/r/aggregate.json"); got != want {
			t.Errorf("Join(%q) = %q; want %q", url, got, want)
		}
	}
}

// Who only reads needs no right to write: a full or protected disk is no obstacle.
func TestOpenExistingChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s, _, err := OpenForWriting(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	r, err := OpenExisting(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Create(t.Context(), "runs/x/run.yaml", nil); !errors.Is(err, bundle.ErrDenied) {
		t.Errorf("create: got %v, want ErrDenied", err)
	}
}
