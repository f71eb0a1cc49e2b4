// SPDX-License-Identifier: Apache-2.0

package packcache_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/packcache"
	"github.com/tidemill/tidemill/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pack puts the archive of a directory with one file into a store.
func pack(t *testing.T, store bundle.Store) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	sha, err := manifest.Archive(t.Context(), dir, &b, manifest.ArchiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Put(t.Context(), bundle.PackKey(sha), &b, -1); err != nil {
		t.Fatal(err)
	}
	return sha
}

func open(t *testing.T, store bundle.Store, dir string) *packcache.Cache {
	t.Helper()
	c, err := packcache.New(store, dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func hello(t *testing.T, dir string) {
	t.Helper()
	if body, err := os.ReadFile(filepath.Join(dir, "hello.txt")); err != nil || string(body) != "hello" {
		t.Errorf("unpacked %q, %v", body, err)
	}
}

// empty checks that a directory has nothing in it, half unpacked things included.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left in the cache: %v, %v", entries, err)
	}
}

func TestFetchedOnce(t *testing.T) {
	store := bundletest.NewFaulty(memstore.New())
	sha, root := pack(t, store), t.TempDir()
	c := open(t, store, root)
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			dir, err := c.Use(t.Context(), sha)
			if err != nil {
				t.Error(err)
				return
			}
			hello(t, dir.Dir)
		})
	}
	wg.Wait()
	if n := store.Calls(bundletest.OpGet); n != 1 {
		t.Errorf("%d gets", n)
	}
	// The next process finds it on the disk.
	if _, err := open(t, store, root).Use(t.Context(), sha); err != nil || store.Calls(bundletest.OpGet) != 1 {
		t.Errorf("%v, %d gets", err, store.Calls(bundletest.OpGet))
	}
}

func TestWrongDigestLeavesNothing(t *testing.T) {
	store, root := memstore.New(), t.TempDir()
	sha := pack(t, store)
	other := strings.Repeat("0", 64)
	r, _, err := store.Get(t.Context(), bundle.PackKey(sha))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Put(t.Context(), bundle.PackKey(other), r, -1); err != nil {
		t.Fatal(err)
	}
	c := open(t, store, root)
	for range 2 {
		_, err = c.Use(t.Context(), other)
		if bad, ok := errors.AsType[*manifest.DigestError](err); !ok || bad.Got != sha || bad.Want != other {
			t.Errorf("got %v", err)
		}
	}
	empty(t, root)
}

func TestNames(t *testing.T) {
	c := open(t, memstore.New(), t.TempDir())
	for _, name := range []string{"", "..", "abc", strings.Repeat("../", 22)[:64], strings.Repeat("AB", 32)} {
		if _, err := c.Use(t.Context(), name); err == nil || !strings.Contains(err.Error(), "hex") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := c.Use(t.Context(), strings.Repeat("ab", 32)); !errors.Is(err, bundle.ErrNotFound) {
		t.Errorf("an unknown one: %v", err)
	}
}

// Failures of the store are told from those of the archive, and pass.
func TestStoreFails(t *testing.T) {
	for name, do := range map[string]bundletest.Action{
		"fails": bundletest.Fail(bundle.ErrUnavailable), "breaks off": bundletest.Cut(40), "breaks off at once": bundletest.Cut(0),
	} {
		t.Run(name, func(t *testing.T) {
			store, root := bundletest.NewFaulty(memstore.New()), t.TempDir()
			sha := pack(t, store)
			store.Inject(bundletest.Fault{Op: bundletest.OpGet, Times: 1, Do: do})
			c := open(t, store, root)
			if _, err := c.Use(t.Context(), sha); !errors.Is(err, bundle.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
			empty(t, root)
			dir, err := c.Use(t.Context(), sha)
			if err != nil {
				t.Fatal(err)
			}
			hello(t, dir.Dir)
		})
	}
}

func TestCancelledWaiterDoesNotEndTheFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &gate{Faulty: bundletest.NewFaulty(memstore.New()), open: make(chan struct{})}
		sha := pack(t, store)
		c, err := packcache.New(store, t.TempDir(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		impatient, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Use(impatient, sha); !errors.Is(err, context.Canceled) {
				t.Errorf("the first got %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			dir, err := c.Use(t.Context(), sha)
			if err != nil {
				t.Errorf("the second got %v", err)
				return
			}
			hello(t, dir.Dir)
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(store.open)
		wg.Wait()
		if n := store.Calls(bundletest.OpGet); n != 1 {
			t.Errorf("%d gets", n)
		}
	})
}

// Close ends a fetch that hangs, and leaves nothing of it.
func TestCloseEndsFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := bundletest.NewFaulty(memstore.New())
		sha, root := pack(t, store), t.TempDir()
		store.Inject(bundletest.Fault{Op: bundletest.OpGet, Do: bundletest.Stall()})
		c, err := packcache.New(store, root, 0)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Use(t.Context(), sha); err == nil {
				t.Error("got it")
			}
		})
		synctest.Wait()
		c.Close()
		wg.Wait()
		empty(t, root)
	})
}

func TestNewRemovesWhatACrashLeft(t *testing.T) {
	store, root := memstore.New(), t.TempDir()
	sha := pack(t, store)
	if err := os.MkdirAll(filepath.Join(root, "."+sha+".123.tmp", "half"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := open(t, store, root)
	empty(t, root)
	if _, err := c.Use(t.Context(), sha); err != nil {
		t.Error(err)
	}
}

// gate is a store whose Get waits.
type gate struct {
	*bundletest.Faulty
	open chan struct{}
}

func (g *gate) Get(ctx context.Context, key string) (io.ReadCloser, bundle.Info, error) {
	<-g.open
	return g.Faulty.Get(ctx, key)
}
