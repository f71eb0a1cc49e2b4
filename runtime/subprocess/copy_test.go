// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/tidemill/tidemill/runtime"
)

func itoa(n int) string { return strconv.Itoa(n) }

func tarFile(name, data string, mode int64) io.Reader {
	return tarOf(&tar.Header{Name: name, Mode: mode, Typeflag: tar.TypeReg, Size: int64(len(data))}, data)
}

func tarOf(h *tar.Header, data string) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.WriteHeader(h), func() error { _, err := io.WriteString(w, data); return err }(), w.Close()); err != nil {
		panic(err)
	}
	return &b
}

type outcome struct {
	names   []string
	data    map[string]string
	skipped map[string]string
	total   int
}

func copyOut(t testing.TB, sb *Sandbox, p runtime.Place, name string, limits runtime.CopyLimits) outcome {
	t.Helper()
	c, err := sb.CopyOut(context.Background(), p, name, limits)
	if err != nil {
		t.Fatalf("copy out: %v", err)
	}
	defer c.Close()
	o := outcome{data: map[string]string{}, skipped: map[string]string{}}
	for r := tar.NewReader(c); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("copy out: %v", err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("copy out of %s: %v", h.Name, err)
		}
		o.names = append(o.names, h.Name)
		o.data[h.Name] = string(data)
	}
	list, total := c.Skipped()
	o.total = total
	for _, s := range list {
		o.skipped[s.Path] = s.Reason
	}
	return o
}

func TestNamesOfAnyBytes(t *testing.T) {
	sb := open(t, newRuntime(t, Config{}), "xy")
	names := []string{
		"\xff\xfe", "new\nline", "tab\t", "back\\slash", "ü", "-rf", "a b", "*", "\x01", "c:d", "\"q\"", "'q'",
		strings.Repeat("l", 255),
	}
	for _, name := range names {
		mustWrite(t, filepath.Join(sb.Path(runtime.Workdir), name), "in "+name)
	}
	got := copyOut(t, sb, runtime.Workdir, ".", runtime.CopyLimits{})
	if len(got.names) != len(names) || got.total != 0 {
		t.Errorf("%d names came, %d were left out, want %d and 0", len(got.names), got.total, len(names))
	}
	for _, name := range names {
		if got.data[name] != "in "+name {
			t.Errorf("%q holds %q", name, got.data[name])
		}
	}
	// And the way back.
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: 1}); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, "x")
	}
	if err := errors.Join(w.Close(), sb.CopyIn(t.Context(), runtime.Tests, &b, runtime.CopyOptions{})); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got.names, copyOut(t, sb, runtime.Tests, ".", runtime.CopyLimits{}).names); diff != "" {
		t.Errorf("names after the way back (-out +in):\n%s", diff)
	}
}

// The header of a file is read while its content is still to come.
func TestFilesThatChangeWhileRead(t *testing.T) {
	const size = 8 << 20
	for what, c := range map[string]struct {
		change func(path string) error
		reason string
	}{
		"shrinks": {func(p string) error { return os.Truncate(p, 1000) }, "shrank"},
		"grows":   {func(p string) error { return os.Truncate(p, 2*size) }, "grew"},
	} {
		t.Run(what, func(t *testing.T) {
			sb := open(t, newRuntime(t, Config{}), "xy")
			path := filepath.Join(sb.Path(runtime.Workdir), "f")
			mustWrite(t, path, strings.Repeat("x", size))
			mustWrite(t, filepath.Join(sb.Path(runtime.Workdir), "g"), "after")
			c2, err := sb.CopyOut(t.Context(), runtime.Workdir, ".", runtime.CopyLimits{})
			if err != nil {
				t.Fatal(err)
			}
			defer c2.Close()
			r := tar.NewReader(c2)
			h, err := r.Next() // the pipe holds far less than the file: the packer is in its midst
			if err != nil || h.Name != "f" || h.Size != size {
				t.Fatalf("first entry %+v, %v", h, err)
			}
			if err := c.change(path); err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, r); n != size || err != nil {
				t.Errorf("%d bytes, error %v; want the %d that the header promised", n, err, size)
			}
			if h, err := r.Next(); err != nil || h.Name != "g" {
				t.Errorf("the stream goes on with %+v, %v, want g", h, err)
			}
			if _, err := io.Copy(io.Discard, c2); err != nil {
				t.Fatal(err)
			}
			list, total := c2.Skipped()
			if total != 1 || len(list) != 1 || list[0].Path != "f" || !strings.HasPrefix(list[0].Reason, c.reason) {
				t.Errorf("report %+v (%d in all), want f with %q", list, total, c.reason)
			}
		})
	}
}

func TestSparseAndDeepAndMany(t *testing.T) {
	sb := open(t, newRuntime(t, Config{SkippedCap: 10}), "xy")
	work := sb.Path(runtime.Workdir)
	f, err := os.Create(filepath.Join(work, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(work, strings.Repeat("d/", packDepth+10)), 0o755); err != nil {
		t.Fatal(err)
	}
	mkdir(t, work, "many")
	for i := range 6000 {
		mustWrite(t, filepath.Join(work, "many", itoa(i)), "")
	}
	got := copyOut(t, sb, runtime.Workdir, ".", runtime.CopyLimits{Bytes: 1 << 20})
	if reason := got.skipped["sparse"]; !strings.Contains(reason, "1 MiB") {
		t.Errorf("sparse: %q", reason)
	}
	deep := strings.TrimSuffix(strings.Repeat("d/", packDepth+1), "/")
	if reason := got.skipped[deep]; !strings.Contains(reason, "deeper") {
		t.Errorf("what is too deep: %q in %v", reason, got.skipped)
	}
	if want := 6000 + 1 + packDepth; len(got.names) != want || got.total != 2 {
		t.Errorf("%d entries, %d left out; want %d and 2", len(got.names), got.total, want)
	}
	got = copyOut(t, sb, runtime.Workdir, "many", runtime.CopyLimits{Entries: 100})
	if len(got.names) != 100 || got.total != 5901 || len(got.skipped) != 10 {
		t.Errorf("%d entries, %d left out, %d of them named; want 100, 5901 and 10", len(got.names), got.total, len(got.skipped))
	}
}

// Closing a copy, or the sandbox, in the middle ends it.
func TestCopyOutEnds(t *testing.T) {
	sb := open(t, newRuntime(t, Config{}), "xy")
	f, err := os.Create(filepath.Join(sb.Path(runtime.Workdir), "endless"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil {
		t.Fatal(err)
	}
	c, err := sb.CopyOut(t.Context(), runtime.Workdir, "endless", runtime.CopyLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, c, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("lease lost")
	c, err = sb.CopyOut(ctx, runtime.Workdir, "endless", runtime.CopyLimits{})
	if err != nil {
		t.Fatal(err)
	}
	cancel(reason)
	if _, err := io.Copy(io.Discard, c); !errors.Is(err, reason) {
		t.Errorf("error %v, want %v", err, reason)
	}
	c.Close()

	c, err = sb.CopyOut(t.Context(), runtime.Workdir, "endless", runtime.CopyLimits{})
	if err != nil {
		t.Fatal(err)
	}
	closeSandbox(t, sb) // while nobody reads
	if _, err := io.Copy(io.Discard, c); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
	c.Close()
}

func TestModesAndTimes(t *testing.T) {
	sb := open(t, newRuntime(t, Config{}), "xy")
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []*tar.Header{
		{Name: "ro", Typeflag: tar.TypeDir, Mode: 0o555},
		{Name: "ro/suid", Typeflag: tar.TypeReg, Mode: 0o6755},
		{Name: "secret", Typeflag: tar.TypeReg, Mode: 0o600},
		{Name: "all", Typeflag: tar.TypeReg, Mode: 0o777},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), sb.CopyIn(t.Context(), runtime.Workdir, &b, runtime.CopyOptions{})); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{
		"ro": os.ModeDir | 0o555, "ro/suid": 0o755, "secret": 0o600, "all": 0o777,
	} {
		info, err := os.Lstat(filepath.Join(sb.Path(runtime.Workdir), name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

// Whatever symlinks a stream makes: none of them, however many lead on to each other,
// leads out of the place.
func TestSymlinksStayInside(t *testing.T) {
	rt := newRuntime(t, Config{})
	part := rapid.SampledFrom([]string{"a", "b", "c", "..", ".", "a/b", "../.."})
	rapid.Check(t, func(rt2 *rapid.T) {
		sb, err := tryOpen(t, rt, testSpec(""))
		if err != nil {
			rt2.Fatal(err)
		}
		defer closeSandbox(t, sb)
		work := sb.Path(runtime.Workdir)
		for range rapid.IntRange(1, 8).Draw(rt2, "links") {
			name := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3).Draw(rt2, "name"), "/")
			target := strings.Join(rapid.SliceOfN(part, 1, 4).Draw(rt2, "target"), "/")
			h := &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
			if rapid.Bool().Draw(rt2, "dir") {
				h = &tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}
			}
			err := sb.CopyIn(context.Background(), runtime.Workdir, tarOf(h, ""), runtime.CopyOptions{})
			if refused := (*runtime.PathError)(nil); err != nil && !errors.As(err, &refused) {
				rt2.Fatalf("%s -> %s: %v", name, target, err)
			}
		}
		err = filepath.WalkDir(work, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.Type()&os.ModeSymlink == 0 {
				return err
			}
			to, err := filepath.EvalSymlinks(path)
			if errors.Is(err, os.ErrNotExist) || err != nil && strings.Contains(err.Error(), "too many links") {
				return nil
			}
			if err != nil {
				return err
			}
			if to != work && !strings.HasPrefix(to, work+"/") {
				rt2.Errorf("%s leads to %s", path, to)
			}
			return nil
		})
		if err != nil && !errors.Is(err, unix.ELOOP) {
			rt2.Error(err)
		}
	})
}

// FuzzUnpack gives the unpacker any bytes. It may fail, but never writes outside.
func FuzzUnpack(f *testing.F) {
	for _, h := range []*tar.Header{
		{Name: "a/b", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "../up", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "../../etc"},
		{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755},
	} {
		b, err := io.ReadAll(tarOf(h, ""))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	top := f.TempDir()
	place := filepath.Join(top, "place")
	f.Fuzz(func(t *testing.T, data []byte) {
		mkdir(t, top, "place")
		root, err := openDir(place)
		if err != nil {
			t.Fatal(err)
		}
		u := &unpacker{top: root, limits: runtime.CopyLimits{Bytes: 1 << 20, Entries: 1000}}
		_ = u.unpack(t.Context(), tar.NewReader(bytes.NewReader(data)))
		if err := errors.Join(root.Close(), os.RemoveAll(place)); err != nil {
			t.Fatal(err)
		}
		if left := entriesOf(t, top); len(left) > 0 {
			t.Errorf("outside the place: %v", left)
		}
	})
}
