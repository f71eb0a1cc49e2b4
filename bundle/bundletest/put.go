// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/tidemill/tidemill/bundle"
)

func testPutReplaces(t *testing.T, h Harness) {
	s := h.open(t)
	for _, body := range []string{"one", "a longer one", "2", ""} {
		mustPut(t, s, "a/k", body)
		wantBody(t, s, "a/k", body)
	}
	wantKeys(t, s, "", "a/k")
}

// testPutNeverAMixture replaces an object over and over while others read it.
func testPutNeverAMixture(t *testing.T, h Harness) {
	stores := h.handles(t)
	const size, writes, readers = 200_000, 24, 4
	mustPut(t, stores[0], "k", string(fill('a', size)))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			s := stores[i%len(stores)]
			for {
				if err := readUniform(t, s, "k"); err != nil {
					t.Errorf("reader %d: %v", i, err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range writes {
		// Another length each time, so that a torn object would show by its size too.
		body := fill(byte('b'+i), size+i)
		if err := stores[i%len(stores)].Put(t.Context(), "k", bytes.NewReader(body), int64(len(body))); err != nil {
			t.Errorf("put %d: %v", i, err)
		}
	}
	close(done)
	wg.Wait()
}

// readUniform wants an object that consists of one byte value, in the announced size.
func readUniform(t *testing.T, s bundle.Store, key string) error {
	r, info, err := s.Get(t.Context(), key)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	if int64(len(body)) != info.Size {
		return errors.New("body and info have different sizes")
	}
	if len(bytes.Trim(body, string(body[:1]))) > 0 {
		return errors.New("the body is a mixture of two objects")
	}
	return nil
}

func testPutWrongSize(t *testing.T, h Harness) {
	s := h.open(t)
	mustPut(t, s, "k", "old")
	for _, c := range []struct {
		body string
		size int64
	}{{"short", 6}, {"long", 3}, {"", 1}, {"x", 0}} {
		for _, key := range []string{"k", "new/k"} {
			if err := s.Put(t.Context(), key, strings.NewReader(c.body), c.size); err == nil {
				t.Errorf("put of %q as %d bytes: no error", c.body, c.size)
			}
			if err := s.Put(t.Context(), key, unseekable{strings.NewReader(c.body)}, c.size); err == nil {
				t.Errorf("put of %q as %d bytes, unseekable: no error", c.body, c.size)
			}
		}
	}
	wantBody(t, s, "k", "old")
	wantKeys(t, s, "", "k")
}

func testPutReaderFails(t *testing.T, h Harness) {
	s := h.open(t)
	mustPut(t, s, "k", "old")
	broken := errors.New("the disk that is read broke")
	for _, key := range []string{"k", "new/k"} {
		for _, size := range []int64{-1, 100} {
			r := io.MultiReader(strings.NewReader("some of it"), iotest.ErrReader(broken))
			wantErr(t, s.Put(t.Context(), key, r, size), broken, "put from a broken reader")
		}
	}
	wantBody(t, s, "k", "old")
	wantKeys(t, s, "", "k")
}

func testPutUnseekable(t *testing.T, h Harness) {
	s := h.open(t)
	body := strings.Repeat("unseekable ", 10_000)
	for _, size := range []int64{int64(len(body)), -1} {
		r := unseekable{iotest.HalfReader(strings.NewReader(body))}
		if err := s.Put(t.Context(), "k", r, size); err != nil {
			t.Fatalf("size %d: %v", size, err)
		}
		wantBody(t, s, "k", body)
	}
	// A reader may give its last bytes together with the end.
	if err := s.Put(t.Context(), "k", unseekable{iotest.DataErrReader(strings.NewReader("tail"))}, 4); err != nil {
		t.Fatal(err)
	}
	wantBody(t, s, "k", "tail")
}

func testPutFromWhereItStands(t *testing.T, h Harness) {
	s := h.open(t)
	r := strings.NewReader("head and tail")
	if _, err := r.Seek(9, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "k", r, 4); err != nil {
		t.Fatal(err)
	}
	wantBody(t, s, "k", "tail")
}

func testPutEmpty(t *testing.T, h Harness) {
	s := h.open(t)
	for key, size := range map[string]int64{"known": 0, "unknown": -1} {
		if err := s.Put(t.Context(), key, strings.NewReader(""), size); err != nil {
			t.Fatal(err)
		}
		body, info := read(t, s, key)
		if body != "" || info.Size != 0 {
			t.Errorf("%s: read %q, size %d; want nothing", key, body, info.Size)
		}
	}
}
