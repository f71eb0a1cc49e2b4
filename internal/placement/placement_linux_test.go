// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func flagsOf(t *testing.T, dir string) (flags int, ext4 bool) {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags, _ = unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	return flags, fs.Type == unix.EXT4_SUPER_MAGIC
}

// A directory is marked where the file system is one that knows the mark, and nothing else
// about it changes; what is made in it isn't marked.
func TestSpread(t *testing.T) {
	dir := t.TempDir()
	before, ext4 := flagsOf(t, dir)
	want := before
	if ext4 {
		want |= topDir
	}
	for range 2 {
		Spread(dir)
		if got, _ := flagsOf(t, dir); got != want {
			t.Errorf("flags %#x, want %#x", got, want)
		}
	}
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, _ := flagsOf(t, sub); got != before {
		t.Errorf("what is inside has flags %#x, want %#x", got, before)
	}
}

// It is a hint: what can't take it is as it was.
func TestSpreadOfWhatCantBe(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	before, _ := flagsOf(t, target)
	for _, path := range []string{file, link, filepath.Join(dir, "none"), ""} {
		Spread(path)
	}
	if got, _ := flagsOf(t, target); got != before {
		t.Errorf("through a link the flags became %#x, want %#x", got, before)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "x" {
		t.Errorf("the file reads %q, %v", text, err)
	}
	Spread("/dev/shm") // another file system
}
