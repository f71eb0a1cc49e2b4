// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
)

// mustPutQuietly is for goroutines other than the test's, which can't end it.
func mustPutQuietly(t *testing.T, s bundle.Store, key string) {
	if err := s.Put(t.Context(), key, strings.NewReader("y"), 1); err != nil {
		t.Errorf("put %s: %v", key, err)
	}
}

func testDeleteTwice(t *testing.T, h Harness) {
	s := h.open(t)
	mustCreate(t, s, "a/b/k", "x")
	mustCreate(t, s, "a/other", "x")
	for _, key := range []string{"a/b/k", "a/b/k", "never/was", "a/b", "a", "a/other/k"} {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("delete %s: %v", key, err)
		}
	}
	wantAbsent(t, s, "a/b/k")
	wantKeys(t, s, "", "a/other")
}

// testCancelled: a context that has ended means an error and no effect.
func testCancelled(t *testing.T, h Harness) {
	s := h.open(t)
	v := mustCreate(t, s, "k", "old")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Create(ctx, "new", []byte("x"))
	wantErr(t, err, context.Canceled, "create")
	_, err = s.Swap(ctx, "k", v, []byte("x"))
	wantErr(t, err, context.Canceled, "swap")
	wantErr(t, s.Put(ctx, "k", strings.NewReader("x"), 1), context.Canceled, "put")
	_, _, err = s.Get(ctx, "k")
	wantErr(t, err, context.Canceled, "get")
	_, err = s.GetRange(ctx, "k", 0, 1)
	wantErr(t, err, context.Canceled, "get range")
	wantErr(t, s.Delete(ctx, "k"), context.Canceled, "delete")
	var last error
	for _, err := range s.List(ctx, "") {
		last = err
	}
	wantErr(t, last, context.Canceled, "list")
	wantBody(t, s, "k", "old")

	// One that ends while an object is being read must not leave a part of it.
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	err = s.Put(ctx, "k", &cancelling{cancel: cancel}, -1)
	wantErr(t, err, context.Canceled, "put that is cancelled half-way")
	wantBody(t, s, "k", "old")
	wantKeys(t, s, "", "k")
}

// cancelling ends the context after some bytes, and would go on for long.
type cancelling struct {
	cancel context.CancelFunc
	n      int
}

func (c *cancelling) Read(p []byte) (int, error) {
	if c.n++; c.n == 3 {
		c.cancel()
	}
	if c.n > 1000 {
		return 0, context.Canceled
	}
	return min(len(p), 1000), nil
}

func testURL(t *testing.T, h Harness) {
	s := h.open(t)
	u, err := url.Parse(s.URL())
	if err != nil || u.Scheme == "" || u.User != nil {
		t.Errorf("URL %q: want one with a scheme and without credentials (%v)", s.URL(), err)
	}
}

func testClose(t *testing.T, h Harness) {
	s := h.Open(t)
	mustCreate(t, s, "k", "x")
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}
