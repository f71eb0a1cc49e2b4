// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemill/tidemill/bundle"
)

func testListPrefixes(t *testing.T, h Harness) {
	s := h.open(t)
	keys := []string{"runs/a/run.yaml", "runs/a/plan/0", "runs/a/plan/1", "runs/ab/run.yaml", "runs/a.b", "store.json"}
	for _, key := range keys {
		mustPut(t, s, key, key)
	}
	for prefix, want := range map[string][]string{
		"":                  keys,
		"runs/":             keys[:5],
		"runs":              keys[:5],
		"r":                 keys[:5],
		"runs/a":            keys[:5],
		"runs/a/":           keys[:3],
		"runs/a/p":          keys[1:3],
		"runs/a/plan":       keys[1:3],
		"runs/a/plan/":      keys[1:3],
		"runs/a/plan/1":     keys[2:3],
		"runs/a/plan/1x":    nil,
		"runs/a/plan/1/":    nil,
		"runs/ab":           keys[3:4],
		"runs/a.":           keys[4:5],
		"store.json":        keys[5:],
		"nowhere/to/be/see": nil,
		"z":                 nil,
	} {
		wantKeys(t, s, prefix, want...)
	}
	for info, err := range s.List(t.Context(), "runs/") {
		if err != nil {
			t.Fatal(err)
		}
		_, got := read(t, s, info.Key)
		if info.Size != got.Size {
			t.Errorf("%s is listed with size %d, has %d", info.Key, info.Size, got.Size)
		}
		if info.Version != "" && info.Version != got.Version {
			t.Errorf("%s is listed with version %q, has %q", info.Key, info.Version, got.Version)
		}
	}
}

func testListEmpty(t *testing.T, h Harness) {
	s := h.open(t)
	wantKeys(t, s, "")
	wantKeys(t, s, "runs/")
	mustCreate(t, s, "a/b/c", "x")
	if err := s.Delete(t.Context(), "a/b/c"); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, s, "")
}

// testListDirs holds for stores with and without the ability.
func testListDirs(t *testing.T, h Harness) {
	s := h.open(t)
	long := strings.Repeat("l", 450)
	for _, key := range []string{"runs/a/run.yaml", "runs/a/deep/er", "runs/b/x", "runs/file", "runs/ab/x", "runs/" + long + "/x", "runs/gone/x", "other/x"} {
		mustCreate(t, s, key, "x")
	}
	if err := s.Delete(t.Context(), "runs/gone/x"); err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string][]string{
		"":            {"other", "runs"},
		"runs/":       {"a", "ab", "b", long},
		"runs/a/":     {"deep"},
		"runs/b/":     nil,
		"runs/file/":  nil,
		"runs/never/": nil,
	} {
		var got []string
		for name, err := range bundle.Dirs(t.Context(), s, prefix) {
			if err != nil {
				t.Fatalf("directories below %q: %v", prefix, err)
			}
			got = append(got, name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("directories below %q (-want +got):\n%s", prefix, diff)
		}
	}
	for range bundle.Dirs(t.Context(), s, "runs/") {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var last error
	for _, err := range bundle.Dirs(ctx, s, "runs/") {
		last = err
	}
	wantErr(t, last, context.Canceled, "directories")
}

func testListEarlyBreak(t *testing.T, h Harness) {
	s := h.open(t)
	for i := range 10 {
		mustCreate(t, s, fmt.Sprintf("d%d/k", i), "x")
	}
	for stop := range 10 {
		n := 0
		for _, err := range s.List(t.Context(), "d") {
			if err != nil {
				t.Fatal(err)
			}
			if n == stop {
				break
			}
			n++
		}
	}
	// One value can be walked again, and inside of itself.
	seq, n := s.List(t.Context(), "d"), 0
	for range seq {
		for range seq {
			n++
		}
	}
	if n != 100 {
		t.Errorf("10 objects, listed for each of them: %d, want 100", n)
	}
}

// testListNoLeftovers: what failed or was refused leaves nothing that a listing shows.
func testListNoLeftovers(t *testing.T, h Harness) {
	s := h.open(t)
	ctx := t.Context()
	v := mustCreate(t, s, "d/k", "x")
	_, _ = s.Create(ctx, "d/k", []byte("y"))
	_, _ = s.Swap(ctx, "d/k", "nope", []byte("y"))
	_ = s.Put(ctx, "d/k", unseekable{&noisy{}}, 100)
	_ = s.Put(ctx, "d/other", unseekable{&noisy{}}, -1)
	if _, err := s.Swap(ctx, "d/k", v, []byte("y")); err != nil {
		t.Errorf("swap after refused writes: %v", err)
	}
	mustPut(t, s, "d/k", "z")
	wantKeys(t, s, "", "d/k")
	wantKeys(t, s, "d/", "d/k")
}

// noisy gives some bytes and breaks.
type noisy struct{ n int }

func (r *noisy) Read(p []byte) (int, error) {
	if r.n++; r.n > 3 {
		return 0, fmt.Errorf("broken on purpose")
	}
	return copy(p, "some bytes "), nil
}

func testListMany(t *testing.T, h Harness) {
	s := h.open(t)
	want := make([]string, h.ListKeys)
	for i := range want {
		want[i] = fmt.Sprintf("many/%02x/%06d.json", i%7, i)
	}
	race(16, func(w int) {
		for i := w; i < len(want); i += 16 {
			if _, err := s.Create(t.Context(), want[i], []byte("x")); err != nil {
				t.Errorf("create %s: %v", want[i], err)
			}
		}
	})
	mustPut(t, s, "many.json", "beside")
	wantKeys(t, s, "many/", want...)
}

// testListDuringWrites: objects that are there all the time are listed once, whatever
// is created, replaced and deleted beside them.
func testListDuringWrites(t *testing.T, h Harness) {
	stores := h.handles(t)
	s := stores[0]
	const steady = 60
	for i := range steady {
		mustPut(t, s, fmt.Sprintf("d/%d/steady-%d", i%3, i), "x")
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { churn(t, stores[len(stores)-1], done) })
	for range 10 {
		seen := map[string]int{}
		for info, err := range s.List(t.Context(), "d/") {
			if err != nil {
				t.Errorf("list: %v", err)
				break
			}
			if err := bundle.CheckKey(info.Key); err != nil {
				t.Errorf("list yields a key that can't be one: %v", err)
			}
			seen[info.Key]++
		}
		for i := range steady {
			if key := fmt.Sprintf("d/%d/steady-%d", i%3, i); seen[key] != 1 {
				t.Errorf("%s was listed %d times, want once", key, seen[key])
			}
		}
	}
	close(done)
	wg.Wait()
}

// churn creates and deletes objects beside the steady ones, and replaces one of these,
// until done.
func churn(t *testing.T, s bundle.Store, done <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		key := fmt.Sprintf("d/%d/come-and-go-%d", i%3, i)
		if _, err := s.Create(t.Context(), key, []byte("x")); err != nil {
			t.Errorf("create beside a listing: %v", err)
			return
		}
		mustPutQuietly(t, s, "d/0/steady-0")
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("delete beside a listing: %v", err)
			return
		}
	}
}
