// SPDX-License-Identifier: Apache-2.0

package packcache_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/packcache"
	"github.com/tidemill/tidemill/manifest"
)

// sized puts a pack whose one file has so many blocks into a store; the directory of the
// pack takes another one.
func sized(t *testing.T, store bundle.Store, name string, blocks int) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("x"), blocks*4096-1), 0o644); err != nil {
		t.Fatal(err)
	}
	return archived(t, store, dir)
}

func archived(t *testing.T, store bundle.Store, dir string) string {
	t.Helper()
	var b bytes.Buffer
	sha, err := manifest.Archive(t.Context(), dir, &b, manifest.ArchiveOptions{})
	if err == nil {
		err = store.Put(t.Context(), bundle.PackKey(sha), &b, -1)
	}
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

func bounded(t *testing.T, store bundle.Store, dir string, blocks int) *packcache.Cache {
	t.Helper()
	c, err := packcache.New(store, dir, int64(blocks)*4096)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func use(t *testing.T, c *packcache.Cache, sha string) packcache.Held {
	t.Helper()
	held, err := c.Use(t.Context(), sha)
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(held.Dir); err != nil || len(entries) == 0 {
		t.Errorf("pack in use: %v, %v", entries, err)
	}
	return held
}

// present are the packs in a cache's directory, by their places in a list.
func present(t *testing.T, dir string, all ...string) (at []int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // on its way out
		}
		at = append(at, slices.Index(all, e.Name()))
	}
	slices.Sort(at)
	return at
}

// What was not used for longest goes when something comes in and there is no room.
func TestOldestGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, root := memstore.New(), t.TempDir()
		a, b, c := sized(t, store, "a", 3), sized(t, store, "b", 3), sized(t, store, "c", 3)
		cache := bounded(t, store, root, 8) // two of four blocks each
		defer cache.Close()
		for _, sha := range []string{a, b, a} {
			use(t, cache, sha).Release()
			time.Sleep(time.Second) // of the bubble: the order is one of times
		}
		use(t, cache, c).Release()
		if got := present(t, root, a, b, c); !slices.Equal(got, []int{0, 2}) {
			t.Errorf("left are %v, want the first and the third", got)
		}
		if n := cache.Bytes(); n != 8*4096 {
			t.Errorf("%d bytes", n)
		}
		use(t, cache, b).Release() // it comes back
	})
}

// A pack in use never goes, however little room there is.
func TestInUseStays(t *testing.T) {
	store, root := memstore.New(), t.TempDir()
	a, b, c := sized(t, store, "a", 3), sized(t, store, "b", 3), sized(t, store, "c", 3)
	cache := bounded(t, store, root, 1)
	first, second := use(t, cache, a), use(t, cache, b)
	again := use(t, cache, a)
	first.Release()
	first.Release() // counts once
	third := use(t, cache, c)
	if got := present(t, root, a, b, c); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("left are %v, want all three", got)
	}
	again.Release()
	third.Release()
	use(t, cache, c).Release()
	second.Release()
	d := sized(t, store, "d", 1)
	use(t, cache, d).Release()
	if got := present(t, root, a, b, c, d); !slices.Equal(got, []int{3}) {
		t.Errorf("left are %v, want the last one", got)
	}
}

// The next process finds the order of use, and makes room by a smaller bound at once.
func TestBoundHoldsAcrossProcesses(t *testing.T) {
	store, root := memstore.New(), t.TempDir()
	a, b := sized(t, store, "a", 3), sized(t, store, "b", 3)
	first := bounded(t, store, root, 100)
	use(t, first, a).Release()
	use(t, first, b).Release()
	first.Close()
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(root, b), long, long); err != nil {
		t.Fatal(err)
	}
	second := bounded(t, store, root, 4)
	second.Close()
	if got := present(t, root, a, b); !slices.Equal(got, []int{0}) {
		t.Errorf("left are %v, want the one that was used last", got)
	}
}

// What another process unpacked is taken only if it is still what its digest says.
func TestSpoiledPackIsFetchedAgain(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"not at all": func(string) error { return nil },
		"a file is cut": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "bin", "run.sh"), nil, 0o755)
		},
		"a file is missing": func(dir string) error { return os.Remove(filepath.Join(dir, "bin", "run.sh")) },
		"one came":          func(dir string) error { return os.WriteFile(filepath.Join(dir, "more"), nil, 0o644) },
		"it can't be run":   func(dir string) error { return os.Chmod(filepath.Join(dir, "bin", "run.sh"), 0o644) },
		"a link leads away": func(dir string) error {
			link := filepath.Join(dir, "link")
			if err := os.Remove(link); err != nil {
				return err
			}
			return os.Symlink("/etc/passwd", link)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, root, src := bundletest.NewFaulty(memstore.New()), t.TempDir(), t.TempDir()
			if err := os.MkdirAll(filepath.Join(src, "bin"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(src, "bin", "run.sh"), []byte("echo 1"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("bin/run.sh", filepath.Join(src, "link")); err != nil {
				t.Fatal(err)
			}
			sha := archived(t, store, src)
			first := open(t, store, root)
			use(t, first, sha).Release()
			first.Close()
			if err := spoil(filepath.Join(root, sha)); err != nil {
				t.Fatal(err)
			}
			held := use(t, open(t, store, root), sha)
			defer held.Release()
			body, err := os.ReadFile(filepath.Join(held.Dir, "link"))
			if err != nil || string(body) != "echo 1" {
				t.Errorf("got %q, %v", body, err)
			}
			want := 2
			if name == "not at all" {
				want = 1
			}
			if n := store.Calls(bundletest.OpGet); n != want {
				t.Errorf("fetched %d times, want %d", n, want)
			}
		})
	}
}

// A spoiled pack that can't be had again is not in the cache, and nothing counts it.
func TestSpoiledAndGone(t *testing.T) {
	store, root := memstore.New(), t.TempDir()
	sha := strings.Repeat("ab", 32)
	if err := os.MkdirAll(filepath.Join(root, sha), 0o755); err != nil {
		t.Fatal(err)
	}
	c := open(t, store, root)
	if _, err := c.Use(t.Context(), sha); err == nil {
		t.Error("an empty directory was taken for a pack")
	}
	if n := c.Bytes(); n != 0 {
		t.Errorf("%d bytes are counted", n)
	}
	empty(t, root)
}
