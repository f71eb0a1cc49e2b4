// SPDX-License-Identifier: Apache-2.0

package dirstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
)

// TestPaths: people find objects by their keys.
func TestPaths(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	defer s.Close()
	long := strings.Repeat("l", 450)
	for _, key := range []string{"runs/r/run.yaml", "trials/HumanEval~2F0/0/1/index.json", long} {
		if _, err := s.Create(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		".lock", ".tmp/",
		long[:200] + "+/", long[:200] + "+/" + long[:200] + "+/", long[:200] + "+/" + long[:200] + "+/" + long[:50],
		"runs/", "runs/r/", "runs/r/run.yaml",
		"trials/", "trials/HumanEval~2F0/", "trials/HumanEval~2F0/0/", "trials/HumanEval~2F0/0/1/", "trials/HumanEval~2F0/0/1/index.json",
	}
	if diff := cmp.Diff(want, tree(t, root)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestKeyBelowAKey: a file system can't hold both, and says so.
func TestKeyBelowAKey(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	if _, err := s.Create(t.Context(), "a/b", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "a/b/c", "a/b/c/d"} {
		_, err := s.Create(t.Context(), key, []byte("x"))
		if !errors.Is(err, bundle.ErrInvalidKey) {
			t.Errorf("create %s: error %v, want %v", key, err, bundle.ErrInvalidKey)
		}
		err = s.Put(t.Context(), key, strings.NewReader("x"), 1)
		if !errors.Is(err, bundle.ErrInvalidKey) {
			t.Errorf("put %s: error %v, want %v", key, err, bundle.ErrInvalidKey)
		}
	}
	wantListed(t, s, "a/b")
}

// TestStrangersFiles: what isn't an object of ours is not listed, not read and not
// removed.
func TestStrangersFiles(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	defer s.Close()
	if _, err := s.Create(t.Context(), "d/k", []byte("x")); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	err := errors.Join(
		os.WriteFile(secret, []byte("secret"), 0o600),
		os.Symlink(secret, filepath.Join(root, "d", "link")),
		os.Symlink(filepath.Dir(secret), filepath.Join(root, "d", "dir")),
		os.WriteFile(filepath.Join(root, "d", ".DS_Store"), nil, 0o600),
		os.WriteFile(filepath.Join(root, "d", "with space"), nil, 0o600),
		os.MkdirAll(filepath.Join(root, "d", "x+"), 0o700),
		os.WriteFile(filepath.Join(root, "d", "x+", "y"), nil, 0o600),
		os.MkdirAll(filepath.Join(root, "d", ".git"), 0o700),
		os.WriteFile(filepath.Join(root, "d", ".git", "config"), nil, 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	wantListed(t, s, "d/k")
	if r, _, err := s.Get(t.Context(), "d/link"); err == nil {
		_ = r.Close()
		t.Error("a link was followed")
	}
	if err := s.Delete(t.Context(), "d/k"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "d", "with space")); err != nil {
		t.Errorf("a stranger's file: %v", err)
	}
}

func TestEmptyDirectoriesGo(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	defer s.Close()
	for _, key := range []string{"a/b/c/1", "a/b/c/2", "a/x"} {
		if _, err := s.Create(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"a/b/c/1", "a/b/c/2"} {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{".lock", ".tmp/", "a/", "a/x"}, tree(t, root)); diff != "" {
		t.Errorf("after deleting (-want +got):\n%s", diff)
	}
}

// TestWritesIntoVanishingDirectories: the last object of a directory is deleted, and
// with it the directory, while others write there, from here and from elsewhere.
func TestWritesIntoVanishingDirectories(t *testing.T) {
	root := t.TempDir()
	stores := []*dirstore.Store{open(t, root), open(t, root)}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := stores[i%2]
			key := fmt.Sprintf("deep/deeper/deepest/%d", i)
			for range 50 {
				_, err := s.Create(t.Context(), key, []byte("x"))
				err = errors.Join(err, s.Put(t.Context(), key, strings.NewReader("y"), 1), s.Delete(t.Context(), key))
				if err != nil {
					t.Errorf("writer %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff([]string{".lock", ".tmp/"}, tree(t, root)); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
	for _, s := range stores {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func wantListed(t *testing.T, s bundle.Store, want ...string) {
	t.Helper()
	var got []string
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.Key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
}
