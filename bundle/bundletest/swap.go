// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"strconv"
	"testing"

	"github.com/tidemill/tidemill/bundle"
)

func testSwap(t *testing.T, h Harness) {
	s := h.open(t)
	v1 := mustCreate(t, s, "a/k", "one")
	v2, err := s.Swap(t.Context(), "a/k", v1, []byte("two"))
	if err != nil {
		t.Fatal(err)
	}
	body, info := read(t, s, "a/k")
	if body != "two" || info.Version != v2 || v1 == v2 {
		t.Errorf("read %q with version %q, want two with version %q, another than %q", body, info.Version, v2, v1)
	}
	if _, err := s.Swap(t.Context(), "a/k", info.Version, []byte("three")); err != nil {
		t.Errorf("swap with the version that was read: %v", err)
	}
	wantBody(t, s, "a/k", "three")
}

func testSwapChanged(t *testing.T, h Harness) {
	s := h.open(t)
	v1 := mustCreate(t, s, "k", "one")
	mustPut(t, s, "k", "two")
	_, err := s.Swap(t.Context(), "k", v1, []byte("three"))
	wantErr(t, err, bundle.ErrChanged, "swap after put")
	_, err = s.Swap(t.Context(), "k", "no such version", []byte("three"))
	wantErr(t, err, bundle.ErrChanged, "swap with a made-up version")
	wantBody(t, s, "k", "two")
}

func testSwapGone(t *testing.T, h Harness) {
	s := h.open(t)
	v := mustCreate(t, s, "k", "one")
	if err := s.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Swap(t.Context(), "k", v, []byte("two"))
	wantErr(t, err, bundle.ErrChanged, "swap after delete")
	_, err = s.Swap(t.Context(), "dir/never", v, []byte("two"))
	wantErr(t, err, bundle.ErrChanged, "swap of what never was")
	wantKeys(t, s, "")
}

// testSwapABA: a writer who saw the first version must not succeed because the content
// came back.
func testSwapABA(t *testing.T, h Harness) {
	s := h.open(t)
	seen := map[bundle.Version]int{}
	v := mustCreate(t, s, "k", "A")
	for i := range 50 {
		if before, twice := seen[v]; twice {
			t.Fatalf("write %d has the version of write %d, %q", i, before, v)
		}
		seen[v] = i
		next, err := s.Swap(t.Context(), "k", v, []byte{"AB"[i%2]})
		if err != nil {
			t.Fatal(err)
		}
		v = next
	}
	for old := range seen {
		_, err := s.Swap(t.Context(), "k", old, []byte("late"))
		wantErr(t, err, bundle.ErrChanged, "swap with an old version")
	}
}

func testSwapRace(t *testing.T, h Harness) {
	stores := h.handles(t)
	v := mustCreate(t, stores[0], "k", "0")
	for round := range h.RaceRounds {
		errs := make([]error, racers)
		versions := make([]bundle.Version, racers)
		race(racers, func(i int) {
			versions[i], errs[i] = stores[i%len(stores)].Swap(t.Context(), "k", v, fmt.Appendf(nil, "%d/%d", round, i))
		})
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Fatalf("round %d: writers %d and %d both swapped one version", round, winner, i)
			case err == nil:
				winner = i
			case !errors.Is(err, bundle.ErrChanged):
				t.Fatalf("round %d: writer %d: %v, want %v", round, i, err, bundle.ErrChanged)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: nobody swapped", round)
		}
		wantBody(t, stores[0], "k", fmt.Sprintf("%d/%d", round, winner))
		v = versions[winner]
	}
}

// testSwapCounter counts with read and swap: no increment may get lost.
func testSwapCounter(t *testing.T, h Harness) {
	stores := h.handles(t)
	mustCreate(t, stores[0], "n", "0")
	const writers, each = 8, 10
	race(writers, func(i int) {
		s := stores[i%len(stores)]
		for range each {
			if err := increment(t, s, "n"); err != nil {
				t.Errorf("writer %d: %v", i, err)
				return
			}
		}
	})
	wantBody(t, stores[0], "n", strconv.Itoa(writers*each))
}

func increment(t *testing.T, s bundle.Store, key string) error {
	for {
		r, info, err := s.Get(t.Context(), key)
		if err != nil {
			return err
		}
		var n int
		_, err = fmt.Fscan(r, &n)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
		goruntime.Gosched() // let the others read the same
		_, err = s.Swap(t.Context(), key, info.Version, []byte(strconv.Itoa(n+1)))
		if !errors.Is(err, bundle.ErrChanged) {
			return err
		}
	}
}
