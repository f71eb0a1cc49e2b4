// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
)

// seal makes a small bundle with names of all kinds.
func seal(t *testing.T) (*bundle.Writer, bundle.Sealed) {
	t.Helper()
	w, err := bundle.NewWriter(filepath.Join(t.TempDir(), "new", "bundle"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"logs/agent.log":                       "hello\n",
		"artifacts/empty":                      "",
		"artifacts/.cache/mit Leerzeichen":     "x",
		"artifacts/\xff\x00\n/..x":             "any bytes",
		"artifacts/" + strings.Repeat("ä", 90): "a name longer than a file system takes",
	} {
		if err := w.WriteFile(name, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteYAML("grade.yaml", bundle.Grade{}); err != nil {
		t.Fatal(err)
	}
	sealed, err := w.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return w, sealed
}

func TestSeal(t *testing.T) {
	_, sealed := seal(t)
	var paths []string
	sum := int64(0)
	for _, e := range sealed.Files {
		paths = append(paths, e.Path)
		sum += e.Size
	}
	want := []string{
		"artifacts/empty",
		"artifacts/~2Ecache/mit~20Leerzeichen",
		"artifacts/" + strings.Repeat("~C3~A4", 90),
		"artifacts/~FF~00~0A/~2E.x",
		"grade.yaml",
		"logs/agent.log",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	body, err := os.ReadFile(filepath.Join(sealed.Dir, bundle.IndexName))
	if err != nil {
		t.Fatal(err)
	}
	ix, err := bundle.ParseIndex(body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bundle.Index{SchemaVersion: 1, Files: sealed.Files, SHA256: sealed.IndexSHA256}, ix); diff != "" {
		t.Errorf("index (-want +got):\n%s", diff)
	}
	if sealed.Bytes != sum+int64(len(body)) {
		t.Errorf("%d bytes, want %d", sealed.Bytes, sum+int64(len(body)))
	}
	const hello = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
	if e, ok := ix.Find("logs/agent.log"); !ok || e.Size != 6 || e.SHA256 != hello {
		t.Errorf("logs/agent.log is %+v, want 6 bytes with sha256 %s", e, hello)
	}
	if e, ok := ix.Find("logs"); ok {
		t.Errorf("found %+v", e)
	}
}

// TestLongNames: no name that a file system holds is too long for a bundle.
func TestLongNames(t *testing.T) {
	w, err := bundle.NewWriter(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	wide := strings.Repeat("ф", 127)
	names := []string{
		"artifacts/" + strings.Repeat("x", 255) + "/" + strings.Repeat("y", 255),
		"artifacts/" + wide,
		"artifacts/" + wide + "/" + wide,
		"artifacts/" + strings.Repeat("deep/", 800) + "end",
		wide,
	}
	for _, name := range names {
		if err := w.WriteFile(name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	sealed, err := w.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := memstore.New()
	prefix := bundle.Keys{Run: strings.Repeat("r", 63)}.AttemptFiles(strings.Repeat("t", 200), 99_999, 999)
	if err := bundle.Upload(t.Context(), s, prefix, sealed, 4); err != nil {
		t.Fatal(err)
	}
	ix, err := bundle.Verify(t.Context(), s, prefix)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, e := range ix.Files {
		name, err := e.RealName()
		if err != nil {
			t.Fatal(err)
		}
		got[name] = true
		body, err := os.ReadFile(filepath.Join(sealed.Dir, bundle.LocalPath(e.Path)))
		if err != nil || string(body) != name {
			t.Errorf("%.40q holds %.40q, error %v", name, body, err)
		}
	}
	for _, name := range names {
		if !got[name] {
			t.Errorf("%.40q isn't in the index", name)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	dir := t.TempDir()
	w, err := bundle.NewWriter(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	open, err := w.Create("logs/open.log")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"logs/open.log": bundle.ErrExists,
		"index.json":    bundle.ErrInvalidKey,
		"../x":          bundle.ErrInvalidKey,
		"/x":            bundle.ErrInvalidKey,
		"":              bundle.ErrInvalidKey,
	} {
		if err := w.WriteFile(name, nil); !errors.Is(err, want) {
			t.Errorf("%q: error %v, want %v", name, err, want)
		}
	}
	if err := w.WriteFile("logs", nil); err == nil {
		t.Error("a file was written in the place of a directory")
	}
	if _, err := w.Seal(t.Context()); err == nil || !strings.Contains(err.Error(), "logs/open.log") {
		t.Errorf("seal with an open file: error %v, want one with its name", err)
	}
	if err := errors.Join(open.Close(), open.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Seal(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("seal: error %v, want %v", err, context.Canceled)
	}
	if _, err := w.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFile("late", nil); err == nil {
		t.Error("a file was added after sealing")
	}
	if _, err := w.Seal(t.Context()); err == nil {
		t.Error("sealed twice")
	}
	if _, err := bundle.NewWriter(dir, nil); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a directory that holds a bundle: error %v, want one with its name", err)
	}
	if err := errors.Join(w.Remove(), w.Remove()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after removal: %v", err)
	}
}

func TestWriterManyAtOnce(t *testing.T) {
	w, err := bundle.NewWriter(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := w.WriteFile(fmt.Sprintf("artifacts/%d", i%10), []byte("x")); err != nil && !errors.Is(err, bundle.ErrExists) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if sealed, err := w.Seal(t.Context()); err != nil || len(sealed.Files) != 10 {
		t.Errorf("%d files, error %v; want 10", len(sealed.Files), err)
	}
}

func TestUploadAndVerify(t *testing.T) {
	_, sealed := seal(t)
	prefix := keys.AttemptFiles("t", 0, 1)
	s := bundletest.NewFaulty(memstore.New())
	// One file fails: no index must be there.
	s.Inject(bundletest.Fault{Op: bundletest.OpPut, Key: "agent.log", Times: 1, Do: bundletest.Fail(bundle.ErrUnavailable)})
	if err := bundle.Upload(t.Context(), s, prefix, sealed, 3); !errors.Is(err, bundle.ErrUnavailable) {
		t.Errorf("error %v, want %v", err, bundle.ErrUnavailable)
	}
	if _, _, err := s.Get(t.Context(), prefix+bundle.IndexName); !errors.Is(err, bundle.ErrNotFound) {
		t.Errorf("there is an index of an unfinished upload: %v", err)
	}
	for range 2 {
		if err := bundle.Upload(t.Context(), s, prefix, sealed, 3); err != nil {
			t.Fatal(err)
		}
	}
	ix, err := bundle.Verify(t.Context(), s, prefix)
	if err != nil || ix.SHA256 != sealed.IndexSHA256 {
		t.Errorf("index %s, error %v; want %s", ix.SHA256, err, sealed.IndexSHA256)
	}
	// A bundle of another attempt beside it doesn't matter.
	if err := bundle.Upload(t.Context(), s, keys.AttemptFiles("t", 0, 11), sealed, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Verify(t.Context(), s, prefix); err != nil {
		t.Error(err)
	}
}

func TestVerifyNamesTheFile(t *testing.T) {
	_, sealed := seal(t)
	put := func(path, body string) func(*testing.T, bundle.Store) error {
		return func(t *testing.T, s bundle.Store) error {
			return s.Put(t.Context(), "b/"+path, strings.NewReader(body), int64(len(body)))
		}
	}
	for _, c := range []struct {
		name, path, want string
		spoil            func(*testing.T, bundle.Store) error
	}{
		{"changed", "logs/agent.log", "sha256", put("logs/agent.log", "hellO\n")},
		{"shorter", "logs/agent.log", "5 bytes, the index says 6", put("logs/agent.log", "hello")},
		{"extra", "artifacts/a", "not in the index", put("artifacts/a", "")},
		{"missing", "artifacts/empty", "missing", func(t *testing.T, s bundle.Store) error { return s.Delete(t.Context(), "b/artifacts/empty") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memstore.New()
			if err := bundle.Upload(t.Context(), s, "b/", sealed, 4); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(t, s); err != nil {
				t.Fatal(err)
			}
			_, err := bundle.Verify(t.Context(), s, "b/")
			var mismatch *bundle.MismatchError
			if !errors.As(err, &mismatch) || mismatch.Path != c.path || !strings.Contains(mismatch.Problem, c.want) {
				t.Errorf("error %v, want a mismatch of %s: %s", err, c.path, c.want)
			}
		})
	}
	t.Run("no index", func(t *testing.T) {
		if _, err := bundle.Verify(t.Context(), memstore.New(), "b/"); !errors.Is(err, bundle.ErrNotFound) {
			t.Errorf("error %v, want %v", err, bundle.ErrNotFound)
		}
	})
	t.Run("reader breaks off", func(t *testing.T) {
		s := bundletest.NewFaulty(memstore.New())
		if err := bundle.Upload(t.Context(), s, "b/", sealed, 4); err != nil {
			t.Fatal(err)
		}
		s.Inject(bundletest.Fault{Op: bundletest.OpGet, Key: "agent.log", Do: bundletest.Cut(3)})
		_, err := bundle.Verify(t.Context(), s, "b/")
		var mismatch *bundle.MismatchError
		if err == nil || errors.As(err, &mismatch) {
			t.Errorf("error %v; want one, and no verdict about the file", err)
		}
	})
}

// TestUploadOfAChangedSpool: a file that isn't what was sealed is not passed off as it.
func TestUploadOfAChangedSpool(t *testing.T) {
	_, sealed := seal(t)
	if err := os.WriteFile(filepath.Join(sealed.Dir, "logs", "agent.log"), []byte("longer than before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := bundle.Upload(t.Context(), memstore.New(), "b/", sealed, 2); err == nil || !strings.Contains(err.Error(), "logs/agent.log") {
		t.Errorf("error %v, want one with the file's name", err)
	}
}
