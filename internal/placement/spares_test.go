// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, path string) os.FileInfo {
	t.Helper()
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// A dropped file is the next one that is laid, at most so many are kept, and none before
// the first and after the end.
func TestSpares(t *testing.T) {
	dir := t.TempDir()
	pool := filepath.Join(dir, "pool")
	if err := os.MkdirAll(filepath.Join(pool, "left by a crash"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := NewSpares(pool, 1)
	if err != nil {
		t.Fatal(err)
	}
	count := func(want int) {
		t.Helper()
		if list, _ := os.ReadDir(pool); len(list) != want {
			t.Errorf("%d files are kept, want %d", len(list), want)
		}
	}
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	count(0)
	if s.Lay(a) {
		t.Error("a file was laid before there was one")
	}
	first := write(t, a)
	write(t, b)
	s.Drop(a)
	s.Drop(b) // one too many
	s.Drop(filepath.Join(dir, "none"))
	count(1)
	for _, gone := range []string{a, b} {
		if _, err := os.Stat(gone); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", gone, err)
		}
	}
	if s.Lay(filepath.Join(dir, "no", "such", "place")) {
		t.Error("a file was laid nowhere")
	}
	if !s.Lay(c) {
		t.Fatal("there was nothing to lay")
	}
	if info, err := os.Stat(c); err != nil || !os.SameFile(first, info) || info.Size() != 0 {
		t.Errorf("another file was laid, or one with something in it: %v", err)
	}
	if s.Lay(a) {
		t.Error("one file was laid twice")
	}
	s.Drop(c)
	write(t, c)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Drop(c)
	if _, err := os.Stat(c); !os.IsNotExist(err) || s.Lay(a) {
		t.Errorf("after the end a file is kept: %v", err)
	}
	if _, err := os.Stat(pool); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
}
