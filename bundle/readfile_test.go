// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/memstore"
)

// A file of a bundle is read to its end only if it is what was sealed.
func TestOpenFile(t *testing.T) {
	for name, c := range map[string]struct {
		put  string // in the place of what was sealed; "-" nothing
		want string
	}{
		"as it was":    {"hello", ""},
		"other bytes":  {"jello", "sha256"},
		"cut off":      {"hell", "4 bytes so far, the index says 5"},
		"longer":       {"hello!", "6 bytes so far, the index says 5"},
		"gone":         {"-", "is missing"},
		"all of it is": {"", "0 bytes so far"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := bundle.NewWriter(filepath.Join(t.TempDir(), "b"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.WriteFile("f", []byte("hello")); err != nil {
				t.Fatal(err)
			}
			sealed, err := w.Seal(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s := memstore.New()
			if err := bundle.Upload(t.Context(), s, "p/", sealed, 1); err != nil {
				t.Fatal(err)
			}
			if err := s.Delete(t.Context(), "p/f"); err != nil {
				t.Fatal(err)
			}
			if c.put != "-" {
				if err := s.Put(t.Context(), "p/f", strings.NewReader(c.put), -1); err != nil {
					t.Fatal(err)
				}
			}
			ix, err := bundle.ReadIndex(t.Context(), s, "p/")
			if err != nil || ix.SHA256 != sealed.IndexSHA256 {
				t.Fatalf("index %+v, %v", ix, err)
			}
			r, err := bundle.OpenFile(t.Context(), s, "p/", ix.Files[0])
			var body []byte
			if err == nil {
				body, err = io.ReadAll(r)
				r.Close()
			}
			if c.want == "" {
				if err != nil || string(body) != "hello" {
					t.Errorf("%q, %v", body, err)
				}
				return
			}
			if _, ok := errors.AsType[*bundle.MismatchError](err); !ok || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
