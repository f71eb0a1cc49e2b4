// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

func testGetInfo(t *testing.T, h Harness) {
	s := h.open(t)
	mustPut(t, s, "a/k", "12345")
	_, info := read(t, s, "a/k")
	if info.Key != "a/k" || info.Size != 5 || info.Version == "" {
		t.Errorf("info is %+v, want key a/k, size 5 and a version", info)
	}
	// Another machine's clock may be off, but not by a day.
	if age := time.Since(info.Modified).Abs(); age > 24*time.Hour {
		t.Errorf("modified %v, want about now", info.Modified)
	}
	_, again := read(t, s, "a/k")
	if again.Version != info.Version {
		t.Errorf("version %q, then %q, of an object that nobody changed", info.Version, again.Version)
	}
}

func testNotFound(t *testing.T, h Harness) {
	s := h.open(t)
	mustCreate(t, s, "a/b/c", "x")
	for _, key := range []string{"none", "a", "a/b", "a/b/d", "a/b/c/d", "x/y/z"} {
		wantAbsent(t, s, key)
		r, err := s.GetRange(t.Context(), key, 0, 1)
		if err == nil {
			_ = r.Close()
		}
		wantErr(t, err, bundle.ErrNotFound, "get range "+key)
	}
}

func testGetSurvivesReplacement(t *testing.T, h Harness) {
	s := h.open(t)
	mustPut(t, s, "k", strings.Repeat("old", 100))
	r, _, err := s.Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mustPut(t, s, "k", strings.Repeat("new", 100))
	body, err := io.ReadAll(r)
	if err != nil || string(body) != strings.Repeat("old", 100) {
		t.Errorf("read %.20q, error %v; want the object that was opened", body, err)
	}
}

func testGetRange(t *testing.T, h Harness) {
	s := h.open(t)
	mustPut(t, s, "k", "0123456789")
	mustPut(t, s, "empty", "")
	for _, c := range []struct {
		key    string
		off, n int64
		want   string
	}{
		{"k", 0, 10, "0123456789"},
		{"k", 0, 1, "0"},
		{"k", 3, 4, "3456"},
		{"k", 9, 1, "9"},
		{"k", 8, 100, "89"},
		{"k", 5, math.MaxInt64, "56789"},
		{"k", 10, 1, ""},
		{"k", 1000, 5, ""},
		{"k", 4, 0, ""},
		{"empty", 0, 5, ""},
	} {
		r, err := s.GetRange(t.Context(), c.key, c.off, c.n)
		if err != nil {
			t.Errorf("%d bytes of %s from %d: %v", c.n, c.key, c.off, err)
			continue
		}
		body, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || string(body) != c.want {
			t.Errorf("%d bytes of %s from %d: %q, error %v; want %q", c.n, c.key, c.off, body, err, c.want)
		}
	}
	for _, c := range [][2]int64{{-1, 5}, {0, -1}} {
		if r, err := s.GetRange(t.Context(), "k", c[0], c[1]); err == nil {
			_ = r.Close()
			t.Errorf("%d bytes from %d: no error", c[1], c[0])
		}
	}
}
