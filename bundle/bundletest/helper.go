// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemill/tidemill/bundle"
)

func mustCreate(t *testing.T, s bundle.Store, key, body string) bundle.Version {
	t.Helper()
	v, err := s.Create(t.Context(), key, []byte(body))
	if err != nil {
		t.Fatalf("create %s: %v", key, err)
	}
	return v
}

func mustPut(t *testing.T, s bundle.Store, key, body string) {
	t.Helper()
	if err := s.Put(t.Context(), key, strings.NewReader(body), int64(len(body))); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

func read(t *testing.T, s bundle.Store, key string) (string, bundle.Info) {
	t.Helper()
	r, info, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("read %s: %v", key, err)
	}
	if err := r.Close(); err != nil {
		t.Fatalf("close reader of %s: %v", key, err)
	}
	return string(body), info
}

func wantBody(t *testing.T, s bundle.Store, key, want string) {
	t.Helper()
	if got, _ := read(t, s, key); got != want {
		t.Errorf("%s holds %.60q (%d bytes), want %.60q (%d bytes)", key, got, len(got), want, len(want))
	}
}

func wantErr(t *testing.T, err, want error, call string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", call, err, want)
	}
}

func wantAbsent(t *testing.T, s bundle.Store, key string) {
	t.Helper()
	r, _, err := s.Get(t.Context(), key)
	if err == nil {
		_ = r.Close()
	}
	wantErr(t, err, bundle.ErrNotFound, "get "+key)
}

// list returns the keys of a prefix in order, each as often as it was yielded.
func list(t *testing.T, s bundle.Store, prefix string) []string {
	t.Helper()
	keys := []string{}
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("list %q: %v", prefix, err)
		}
		keys = append(keys, info.Key)
	}
	slices.Sort(keys)
	return keys
}

func wantKeys(t *testing.T, s bundle.Store, prefix string, want ...string) {
	t.Helper()
	want = append([]string{}, want...)
	slices.Sort(want)
	if diff := cmp.Diff(want, list(t, s, prefix)); diff != "" {
		t.Errorf("list %q (-want +got):\n%s", prefix, diff)
	}
}

// race runs n functions that start together and returns when all have ended.
func race(n int, run func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			run(i)
		})
	}
	close(start)
	wg.Wait()
}

// unseekable hides everything of a reader but Read.
type unseekable struct{ r io.Reader }

func (u unseekable) Read(p []byte) (int, error) { return u.r.Read(p) }

// fill reads as n bytes of one kind.
func fill(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }
