// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
)

const racers = 32

func testCreateNew(t *testing.T, h Harness) {
	s := h.open(t)
	v := mustCreate(t, s, "a/b/c", "hello")
	body, info := read(t, s, "a/b/c")
	if body != "hello" || info.Version != v || v == "" {
		t.Errorf("read %q with version %q, want hello with that of its creation, %q", body, info.Version, v)
	}
	mustCreate(t, s, "a/b/empty", "")
	wantBody(t, s, "a/b/empty", "")
}

func testCreateExists(t *testing.T, h Harness) {
	s := h.open(t)
	mustCreate(t, s, "k/first", "first")
	_, err := s.Create(t.Context(), "k/first", []byte("second"))
	wantErr(t, err, bundle.ErrExists, "second create")
	wantBody(t, s, "k/first", "first")

	mustPut(t, s, "k/put", "put")
	_, err = s.Create(t.Context(), "k/put", []byte("second"))
	wantErr(t, err, bundle.ErrExists, "create after put")
	wantBody(t, s, "k/put", "put")
	wantKeys(t, s, "", "k/first", "k/put")
}

func testCreateAfterDelete(t *testing.T, h Harness) {
	s := h.open(t)
	first := mustCreate(t, s, "k", "same")
	if err := s.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if second := mustCreate(t, s, "k", "same"); second == first {
		t.Errorf("version %q was given twice", first)
	}
}

// testCreateRace is what everything rests on: one winner, the others are told, and
// what is there is the winner's, whole.
func testCreateRace(t *testing.T, h Harness) {
	stores := h.handles(t)
	for round := range h.RaceRounds {
		key := fmt.Sprintf("race/%d/key.json", round)
		bodies := make([]string, racers)
		errs := make([]error, racers)
		for i := range bodies {
			// Larger than a page, so that a part would show.
			bodies[i] = fmt.Sprintf("writer %d %s", i, strings.Repeat(fmt.Sprint(i%10), 10_000))
		}
		race(racers, func(i int) {
			_, errs[i] = stores[i%len(stores)].Create(t.Context(), key, []byte(bodies[i]))
		})
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Fatalf("round %d: writers %d and %d both created %s", round, winner, i, key)
			case err == nil:
				winner = i
			case !errors.Is(err, bundle.ErrExists):
				t.Fatalf("round %d: writer %d: %v, want %v", round, i, err, bundle.ErrExists)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: nobody created %s", round, key)
		}
		for _, s := range stores {
			wantBody(t, s, key, bodies[winner])
		}
	}
	if got := len(list(t, stores[0], "")); got != h.RaceRounds {
		t.Errorf("%d objects after %d races", got, h.RaceRounds)
	}
}

func testSelfTest(t *testing.T, h Harness) {
	s := h.open(t)
	if err := bundle.SelfTest(t.Context(), s); err != nil {
		t.Error(err)
	}
	wantKeys(t, s, "")
}

func testCreateKeepsNoReference(t *testing.T, h Harness) {
	s := h.open(t)
	body := []byte("before")
	v, err := s.Create(t.Context(), "k", body)
	if err != nil {
		t.Fatal(err)
	}
	copy(body, "behind")
	wantBody(t, s, "k", "before")
	if _, err := s.Swap(t.Context(), "k", v, body); err != nil {
		t.Fatal(err)
	}
	copy(body, "beyond")
	wantBody(t, s, "k", "behind")
}
