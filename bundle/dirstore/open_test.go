// SPDX-License-Identifier: Apache-2.0

package dirstore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
)

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, root string
		opts       dirstore.Options
		want       string
		is         error
	}{
		{"a file", file, dirstore.Options{}, "want a directory", nil},
		{"below a file", filepath.Join(file, "store"), dirstore.Options{}, "not a directory", nil},
		{"a file, for reading", file, dirstore.Options{ReadOnly: true}, "want a directory", nil},
		{"nothing, for reading", file + ".not", dirstore.Options{ReadOnly: true}, "no such directory", bundle.ErrNotFound},
		{"where nobody can make one", "/proc/self/store", dirstore.Options{}, "", nil},
	} {
		_, err := dirstore.Open(c.root, c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.root) {
			t.Errorf("%s: error %v, want one with %q and the path", c.name, err, c.want)
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.is)
		}
	}
}

func TestURL(t *testing.T) {
	root := filepath.Join(t.TempDir(), "with space")
	s := open(t, root)
	defer s.Close()
	if want := "file://" + strings.ReplaceAll(root, " ", "%20"); s.URL() != want {
		t.Errorf("URL %q, want %q", s.URL(), want)
	}
}

func TestReadOnly(t *testing.T) {
	root := t.TempDir()
	w := open(t, root)
	defer w.Close()
	v, err := w.Create(t.Context(), "a/k", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	before := tree(t, root)
	s, err := dirstore.Open(root, dirstore.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, createErr := s.Create(t.Context(), "a/new", nil)
	_, swapErr := s.Swap(t.Context(), "a/k", v, nil)
	for call, err := range map[string]error{
		"create": createErr,
		"swap":   swapErr,
		"put":    s.Put(t.Context(), "a/k", strings.NewReader("y"), 1),
		"delete": s.Delete(t.Context(), "a/k"),
	} {
		if !errors.Is(err, bundle.ErrDenied) {
			t.Errorf("%s: error %v, want %v", call, err, bundle.ErrDenied)
		}
	}
	r, _, err := s.Get(t.Context(), "a/k")
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	if diff := cmp.Diff(before, tree(t, root)); diff != "" {
		t.Errorf("reading changed the directory (-before +after):\n%s", diff)
	}
}

func TestLeftoversAreRemovedAfterADay(t *testing.T) {
	root := t.TempDir()
	_ = open(t, root).Close()
	for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": 23 * time.Hour} {
		path := filepath.Join(root, ".tmp", name)
		then := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, []byte("part"), 0o600), os.Chtimes(path, then, then)); err != nil {
			t.Fatal(err)
		}
	}
	_ = open(t, root).Close()
	if diff := cmp.Diff([]string{".lock", ".tmp/", ".tmp/young"}, tree(t, root)); diff != "" {
		t.Errorf("after the second open (-want +got):\n%s", diff)
	}
}

// TestModes: objects are as readable as the umask says, not as temporary files are.
func TestModes(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	s := open(t, root)
	defer s.Close()
	v, err := s.Create(t.Context(), "a/created", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Create(t.Context(), "a/swapped", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "a/put", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap(t.Context(), "a/created", v, []byte("y")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"a": 0o750, "a/created": 0o640, "a/swapped": 0o640, "a/put": 0o640} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), want)
		}
	}
}

// tree returns all there is below a directory, directories with a slash.
func tree(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil || name == ".":
		case d.IsDir():
			names = append(names, name+"/")
		default:
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
