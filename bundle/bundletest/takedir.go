// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemill/tidemill/bundle"
)

// The files that are taken in these tests.
var takenFiles = map[string]string{"a.yaml": "one", "logs/agent.log": "", "logs/deep/x": "three", "index.json": "{}"}

// taker returns a store that takes directories, and a directory for it.
func taker(t *testing.T, h Harness) (s bundle.Store, d bundle.DirTaker, dir string, paths []string) {
	t.Helper()
	s = h.open(t)
	d, ok := s.(bundle.DirTaker)
	if !ok {
		t.Skip("this store takes no directories")
	}
	dir = filepath.Join(t.TempDir(), "bundle")
	for path, body := range takenFiles {
		file := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(body), 0o666)); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return s, d, dir, paths
}

func wantTaken(t *testing.T, s bundle.Store, prefix string) {
	t.Helper()
	for path, body := range takenFiles {
		wantBody(t, s, prefix+path, body)
	}
}

// testTakeDir takes a directory, twice: who was interrupted calls again.
func testTakeDir(t *testing.T, h Harness) {
	s, d, dir, paths := taker(t, h)
	for range 2 {
		if err := d.TakeDir(t.Context(), "runs/r/trials/t/0/1/", dir, paths); err != nil {
			t.Fatal(err)
		}
		wantTaken(t, s, "runs/r/trials/t/0/1/")
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory is still there: %v", err)
		}
	}
	if err := s.Delete(t.Context(), "runs/r/trials/t/0/1/a.yaml"); err != nil {
		t.Fatal(err)
	}
	wantAbsent(t, s, "runs/r/trials/t/0/1/a.yaml")
	wantBody(t, s, "runs/r/trials/t/0/1/index.json", "{}")
}

// testTakeDirBeside: what is below the prefix already stays, and so does the directory.
func testTakeDirBeside(t *testing.T, h Harness) {
	s, d, dir, paths := taker(t, h)
	mustPut(t, s, "p/other", "mine")
	wantErr(t, d.TakeDir(t.Context(), "p/", dir, paths), errors.ErrUnsupported, "take beside another object")
	wantBody(t, s, "p/other", "mine")
	wantAbsent(t, s, "p/a.yaml")
	wantUntouched(t, dir)
	if err := d.TakeDir(t.Context(), "q/", dir, paths); err != nil {
		t.Fatal(err)
	}
	wantTaken(t, s, "q/")
}

func testTakeDirRefused(t *testing.T, h Harness) {
	s, d, dir, paths := taker(t, h)
	wantErr(t, d.TakeDir(t.Context(), "p/../q/", dir, paths), bundle.ErrInvalidKey, "take below an invalid prefix")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, d.TakeDir(ctx, "p/", dir, paths), context.Canceled, "take with a cancelled context")
	mustPut(t, s, "o", "an object")
	wantErr(t, d.TakeDir(t.Context(), "o/", dir, paths), bundle.ErrInvalidKey, "take below an object")
	wantUntouched(t, dir)
	wantKeys(t, s, "", "o")
	if err := d.TakeDir(t.Context(), "p/", filepath.Join(dir, "none"), paths); err == nil {
		t.Error("a directory that isn't there was taken")
	}
}

func wantUntouched(t *testing.T, dir string) {
	t.Helper()
	for path, body := range takenFiles {
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != body {
			t.Errorf("%s holds %q, %v; want it untouched", path, got, err)
		}
	}
}
