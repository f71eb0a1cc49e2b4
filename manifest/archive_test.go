// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// makeTree builds the same tree each time, with what must not matter different.
func makeTree(t *testing.T, variant int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	names := []string{"b.txt", "a/z", "a-b", "a/run.sh", "empty/", "a.d/ü", ".hidden", strings.Repeat("long", 50) + "/" + strings.Repeat("name", 50)}
	modes := []fs.FileMode{0o644, 0o600, 0o664}
	for i := range names {
		name := names[(i+variant)%len(names)] // another order of creation
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755-fs.FileMode(variant)); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		mode := modes[variant%len(modes)]
		if strings.HasSuffix(name, ".sh") {
			mode |= 0o100
		}
		if err := os.WriteFile(path, []byte("content of "+name), mode); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1e9*(variant+1)), 7)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../b.txt", filepath.Join(dir, "a/link")); err != nil {
		t.Fatal(err)
	}
	if variant > 0 { // left out
		if err := os.MkdirAll(filepath.Join(dir, "a/.git/objects"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func archive(t testing.TB, dir string) (string, []byte) {
	t.Helper()
	var b bytes.Buffer
	sum, err := Archive(context.Background(), dir, &b, ArchiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return sum, b.Bytes()
}

// The digest is in stores: changing it makes every archived pack a stranger.
func TestArchiveVector(t *testing.T) {
	const want = "eec42d9a6b3ac050fd79b7641ab83808cf70d4342bde9f1eb2c768f8e445e2b2"
	sum, first := archive(t, makeTree(t, 0))
	if sum != want {
		t.Errorf("digest = %s, want %s", sum, want)
	}
	for variant := 1; variant < 3; variant++ {
		again, data := archive(t, makeTree(t, variant))
		if again != sum || !bytes.Equal(first, data) {
			t.Errorf("copy %d has digest %s, want %s", variant, again, sum)
		}
	}
}

func TestArchiveUnpack(t *testing.T) {
	old := syscall.Umask(0o077) // must not matter either
	t.Cleanup(func() { syscall.Umask(old) })
	sum, data := archive(t, makeTree(t, 0))
	dir := filepath.Join(t.TempDir(), "unpacked")
	if err := Unpack(t.Context(), bytes.NewReader(data), sum, dir); err != nil {
		t.Fatal(err)
	}
	if again, _ := archive(t, dir); again != sum {
		t.Errorf("the unpacked tree has digest %s, want %s", again, sum)
	}
	for name, want := range map[string]fs.FileMode{"b.txt": 0o644, "a/run.sh": 0o755, "empty": 0o755 | fs.ModeDir, ".": 0o755 | fs.ModeDir, "a/link": 0o777 | fs.ModeSymlink} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	if err := Unpack(t.Context(), bytes.NewReader(data), sum, dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("unpacked twice: %v", err)
	}
}

func TestArchiveRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		prepare    func(dir string) error
	}{
		{"link out", `l: is a symlink to "../x", which leaves the directory`, func(d string) error { return os.Symlink("../x", d+"/l") }},
		{"absolute link", `l: is a symlink to "/etc/passwd"; only relative`, func(d string) error { return os.Symlink("/etc/passwd", d+"/l") }},
		{"link through a link", `l: is a symlink to "a/../../x"; .. may only come first`, func(d string) error { return os.Symlink("a/../../x", d+"/l") }},
		{"socket", "s: is a socket", func(d string) error {
			l, err := net.Listen("unix", d+"/s")
			if err == nil {
				t.Cleanup(func() { _ = l.Close() })
			}
			return err
		}},
		{"bad name", "the name is not valid UTF-8", func(d string) error { return os.WriteFile(d+"/\xff", nil, 0o644) }},
		{"too many entries", "larger than the limit of 3 entries", func(d string) error {
			return errors.Join(os.Mkdir(d+"/1", 0o755), os.Mkdir(d+"/2", 0o755), os.Mkdir(d+"/3", 0o755), os.Mkdir(d+"/4", 0o755))
		}},
		{"too many bytes", "larger than the limit of 100 bytes", func(d string) error { return os.WriteFile(d+"/f", make([]byte, 101), 0o644) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "tm") // a socket's path has to be short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			if err := c.prepare(dir); err != nil {
				t.Fatal(err)
			}
			_, err = Archive(t.Context(), dir, io.Discard, ArchiveOptions{MaxBytes: 100, MaxEntries: 3})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Archive(t.Context(), "archive_test.go", nil, ArchiveOptions{}); err == nil {
		t.Error("a file was archived as a directory")
	}
}

// member and pack make archives that Archive never would.
type member struct {
	name, link, body string
	kind             byte
}

func hostile(members ...member) []byte {
	var b bytes.Buffer
	z, _ := zstd.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Linkname: m.link, Typeflag: m.kind, Mode: 0o644, Size: int64(len(m.body))}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		_ = w.WriteHeader(h)
		_, _ = io.WriteString(w, m.body)
	}
	_ = w.Close()
	_ = z.Close()
	return b.Bytes()
}

func TestUnpackRefuses(t *testing.T) {
	sum, good := archive(t, makeTree(t, 0))
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"another digest", "want " + sum, hostile(member{name: "a"})},
		{"absolute", "not a plain relative path", hostile(member{name: "/etc/x"})},
		{"dots", "not a plain relative path", hostile(member{name: "a/../../x"})},
		{"dot", "not a plain relative path", hostile(member{name: "./x"})},
		{"twice", "in the archive twice", hostile(member{name: "x"}, member{name: "x"})},
		{"link out", "leaves the directory", hostile(member{name: "l", link: "../..", kind: tar.TypeSymlink})},
		{"absolute link", "is a symlink to", hostile(member{name: "l", link: "/", kind: tar.TypeSymlink})},
		{"through a link", "no such file or directory", hostile(member{name: "d", kind: tar.TypeDir}, member{name: "l", link: "d", kind: tar.TypeSymlink}, member{name: "l/x"})},
		{"hard link", "is of type '1'", hostile(member{name: "h", link: "/etc/passwd", kind: tar.TypeLink})},
		{"device", "is of type '3'", hostile(member{name: "n", kind: tar.TypeChar})},
		{"pipe", "is of type '6'", hostile(member{name: "p", kind: tar.TypeFifo})},
		{"file as directory", "not a directory", hostile(member{name: "f"}, member{name: "f/x"})},
		{"cut short", "unexpected EOF", good[:len(good)/2]},
		{"not zstd", "magic number mismatch", []byte("hello, this is text")},
		{"nothing", "want " + sum, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent := t.TempDir()
			err := Unpack(t.Context(), bytes.NewReader(c.data), sum, filepath.Join(parent, "dir"))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %v, want %q", err, c.want)
			}
			if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
	var wrong *DigestError
	if err := Unpack(t.Context(), bytes.NewReader(hostile()), sum, filepath.Join(t.TempDir(), "x")); !errors.As(err, &wrong) {
		t.Errorf("err = %v, want a DigestError", err)
	}
}

func TestExtractLimits(t *testing.T) {
	bomb := hostile(member{name: "zeros", body: strings.Repeat("\x00", 1<<20)})
	for _, o := range []ArchiveOptions{{MaxBytes: 1000, MaxEntries: 10}, {MaxBytes: 2 << 20, MaxEntries: 0}} {
		if _, err := extract(t.Context(), bytes.NewReader(bomb), t.TempDir(), o); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%+v: err = %v, want ErrTooLarge", o, err)
		}
	}
}

func TestUnpackCancelled(t *testing.T) {
	sum, data := archive(t, makeTree(t, 0))
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if err := Unpack(ctx, bytes.NewReader(data), sum, filepath.Join(t.TempDir(), "x")); !errors.Is(err, stop) {
		t.Errorf("err = %v, want the cause", err)
	}
}

// FuzzUnpack feeds tars (compression is a detail): whatever they are, nothing appears
// outside of the directory, and what was unpacked can be archived.
func FuzzUnpack(f *testing.F) {
	for _, data := range [][]byte{
		hostile(member{name: "a/"}, member{name: "a/b", body: "x"}),
		hostile(member{name: "l", link: "../x", kind: tar.TypeSymlink}, member{name: "l/x"}),
		hostile(member{name: "../x"}),
	} {
		z, _ := zstd.NewReader(nil)
		plain, err := z.DecodeAll(data, nil)
		z.Close()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(plain)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "in")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := extract(t.Context(), bytes.NewReader(encoder.EncodeAll(data, nil)), dir, ArchiveOptions{MaxBytes: 1 << 20, MaxEntries: 100})
		if left, _ := os.ReadDir(parent); len(left) != 1 {
			t.Fatalf("something is outside: %v", left)
		}
		if err != nil {
			return
		}
		if _, err := Archive(t.Context(), dir, nil, ArchiveOptions{}); err != nil {
			t.Fatalf("unpacked what can't be archived: %v", err)
		}
	})
}

func TestPathOrder(t *testing.T) {
	want := []string{"a", "a/b", "a/b/c", "a-b", "a.d", "b"}
	entries := []entry{{name: "b"}, {name: "a-b"}, {name: "a.d"}, {name: "a/b/c"}, {name: "a"}, {name: "a/b"}}
	sortEntries(entries)
	var got []string
	for _, e := range entries {
		got = append(got, e.name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
