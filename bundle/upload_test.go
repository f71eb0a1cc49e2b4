// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/memstore"
)

// slowStore notes which files go up at the same time: each waits until no other can come.
type slowStore struct {
	*memstore.Store
	mu      sync.Mutex
	now     []string
	largest int
	next    chan struct{}
}

func (s *slowStore) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	s.mu.Lock()
	s.now = append(s.now, key)
	s.largest = max(s.largest, len(s.now))
	s.mu.Unlock()
	<-s.next
	s.mu.Lock()
	s.now = slices.DeleteFunc(s.now, func(k string) bool { return k == key })
	s.mu.Unlock()
	return s.Store.Put(ctx, key, r, size)
}

// As many files go up at once as were asked for, and no more; the index goes alone, when
// all others are there.
func TestUploadInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := bundle.NewWriter(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if err := w.WriteFile(fmt.Sprint("logs/", i), []byte("text")); err != nil {
				t.Fatal(err)
			}
		}
		sealed, err := w.Seal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := &slowStore{Store: memstore.New(), next: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- bundle.Upload(t.Context(), s, "b/", sealed, 4) }()
		for n := range 11 {
			synctest.Wait()
			s.mu.Lock()
			want := min(4, 10-n)
			if n == 10 {
				want = 1 // the index
			}
			if len(s.now) != want || slices.ContainsFunc(s.now, func(k string) bool { return strings.HasSuffix(k, bundle.IndexName) }) != (n == 10) {
				t.Errorf("after %d files %v go up, want %d", n, s.now, want)
			}
			s.mu.Unlock()
			s.next <- struct{}{}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if s.largest != 4 {
			t.Errorf("%d files went up at once, want 4", s.largest)
		}
	})
}
