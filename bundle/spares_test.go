// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
)

// pile is the plainest of [bundle.Spares].
type pile struct {
	dir   string
	files []string
}

func (p *pile) Lay(path string) bool {
	if len(p.files) == 0 {
		return false
	}
	last := len(p.files) - 1
	if os.Rename(p.files[last], path) != nil {
		return false
	}
	p.files = p.files[:last]
	return true
}

func (p *pile) Drop(path string) {
	to := filepath.Join(p.dir, strconv.Itoa(len(p.files)))
	if os.Truncate(path, 0) == nil && os.Rename(path, to) == nil {
		p.files = append(p.files, to)
	}
}

// A bundle in the files of another one is as if they were new. A file that somebody may
// still write to serves nobody.
func TestWriterReusesFiles(t *testing.T) {
	spares := &pile{dir: t.TempDir()}
	write := func(body string, names ...string) (*bundle.Writer, bundle.Sealed) {
		t.Helper()
		w, err := bundle.NewWriter(filepath.Join(t.TempDir(), "bundle"), spares)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := w.WriteFile(name, []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		sealed, err := w.Seal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return w, sealed
	}
	first, _ := write(strings.Repeat("long ", 1000), "a", "b", "logs/c", "logs/\xff")
	if err := first.Remove(); err != nil {
		t.Fatal(err)
	}
	if len(spares.files) != 5 {
		t.Fatalf("%d files are kept of 4 and the index", len(spares.files))
	}
	names := []string{"d", "e/f", "g", "h", "i", "j"}
	_, got := write("short", names...)
	if len(spares.files) != 0 {
		t.Errorf("%d of them are kept still", len(spares.files))
	}
	plain, err := bundle.NewWriter(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := plain.WriteFile(name, []byte("short")); err != nil {
			t.Fatal(err)
		}
	}
	want, err := plain.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.IndexSHA256 != want.IndexSHA256 || got.Bytes != want.Bytes {
		t.Errorf("sealed %s of %d bytes, want %s of %d", got.IndexSHA256, got.Bytes, want.IndexSHA256, want.Bytes)
	}
	for _, name := range append(names, bundle.IndexName) {
		mine, err := os.Stat(filepath.Join(got.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := os.Stat(filepath.Join(want.Dir, name))
		if err != nil || mine.Size() != theirs.Size() || mine.Mode() != theirs.Mode() {
			t.Errorf("%s: %d bytes, %v; in new files %d, %v, %v", name, mine.Size(), mine.Mode(), theirs.Size(), theirs.Mode(), err)
		}
	}

	broken, err := bundle.NewWriter(t.TempDir(), spares)
	if err != nil {
		t.Fatal(err)
	}
	open, err := broken.Create("open")
	if err != nil {
		t.Fatal(err)
	}
	if err := broken.Remove(); err != nil {
		t.Fatal(err)
	}
	if len(spares.files) != 0 {
		t.Error("a file that is open was kept")
	}
	_ = open.Close()
	if err := broken.Remove(); err != nil || len(spares.files) != 0 {
		t.Errorf("%d files of a bundle that is gone are kept; %v", len(spares.files), err)
	}
}
