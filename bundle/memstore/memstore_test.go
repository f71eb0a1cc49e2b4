// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
)

func TestStore(t *testing.T) {
	bundletest.Run(t, bundletest.Harness{
		Open:     func(*testing.T) bundle.Store { return memstore.New() },
		InMemory: true,
	})
}

func listed(t *testing.T, s bundle.Store, prefix string) (keys []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// Whatever is created and deleted, in whichever order, a listing shows what is there, in
// order and once: over many pages, and from prefixes that begin anywhere.
func TestListAfterChanges(t *testing.T) {
	for name, next := range map[string]func(rng *rand.Rand, i int) int{
		"at random": func(rng *rand.Rand, _ int) int { return rng.IntN(20_000) },
		"upwards":   func(_ *rand.Rand, i int) int { return i },
		"downwards": func(_ *rand.Rand, i int) int { return 20_000 - i },
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			s, want := memstore.New(), map[string]bool{}
			check := func() {
				t.Helper()
				all := slices.Sorted(maps.Keys(want))
				for _, prefix := range []string{"", "k/", "k/1", "k/19", "k/00007", "z"} {
					some := slices.DeleteFunc(slices.Clone(all), func(key string) bool { return !strings.HasPrefix(key, prefix) })
					if diff := cmp.Diff(some, listed(t, s, prefix), cmp.Transformer("empty", func(k []string) []string { return append([]string{}, k...) })); diff != "" {
						t.Fatalf("list %q of %d objects (-want +got):\n%s", prefix, len(want), diff)
					}
				}
			}
			for i := range 15_000 {
				key := fmt.Sprintf("k/%05d", next(rng, i))
				var err error
				if rng.IntN(3) == 0 {
					err = s.Delete(t.Context(), key)
					delete(want, key)
				} else {
					err = s.Put(t.Context(), key, strings.NewReader("x"), 1)
					want[key] = true
				}
				if err != nil {
					t.Fatal(err)
				}
				if i%3000 == 0 {
					check()
				}
			}
			check()
			for _, key := range listed(t, s, "") {
				if err := s.Delete(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			if left := listed(t, s, ""); len(left) > 0 {
				t.Errorf("%q are left", left)
			}
		})
	}
}

// A million objects are no reason to wait: a listing costs what it shows, not what is there.
func TestListCostsWhatItShows(t *testing.T) {
	fill := func(n int) *memstore.Store {
		s := memstore.New()
		for i := range n {
			if _, err := s.Create(context.Background(), fmt.Sprintf("trials/%07d/commit", i), nil); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	// As each attempt of a run does: claim a new key, and list those beside it. The best of
	// some, for others use the machine too.
	cost := func(s *memstore.Store, n int) time.Duration {
		best := time.Hour
		for round := range 5 {
			begun := time.Now()
			for i := range 1000 {
				at := fmt.Sprintf("trials/%07d/", i*(n/1000))
				if _, err := s.Create(context.Background(), fmt.Sprintf("%sattempts/%d", at, round), nil); err != nil {
					t.Fatal(err)
				}
				if got := len(listed(t, s, at+"attempts/")); got != round+1 {
					t.Fatalf("%d attempts below %s, want %d", got, at, round+1)
				}
			}
			best = min(best, time.Since(begun))
		}
		return best
	}
	small, large := 1000, 1_000_000
	if testing.Short() {
		large = 100_000
	}
	few, many := cost(fill(small), small), cost(fill(large), large)
	t.Logf("1000 claims and listings: %s beside %d objects, %s beside %d", few, small, many, large)
	if many > 50*few {
		t.Errorf("1000 claims and listings take %s beside %d objects and %s beside %d", few, small, many, large)
	}
}
