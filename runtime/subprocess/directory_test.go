// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

func TestNames(t *testing.T) {
	top := t.TempDir()
	var want []string
	for i := range 3000 { // more than the kernel gives at once
		name := fmt.Sprintf("a-rather-long-name-%04d", i)
		mustWrite(t, filepath.Join(top, name), "")
		want = append(want, name)
	}
	dir, err := openDir(top)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, atLeast := range []int{1, 1000, 3000, 10000} {
		if err := dir.rewind(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for more := true; more; {
			var names []string
			names, more, err = dir.names(atLeast)
			if err != nil {
				t.Fatal(err)
			}
			if more && len(names) < atLeast {
				t.Errorf("%d names, want at least %d or the end", len(names), atLeast)
			}
			got = append(got, names...)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%d at a time: %d names, want %d, each once", atLeast, len(got), len(want))
		}
	}
	if empty, err := dir.isEmpty(); empty || err != nil {
		t.Errorf("isEmpty: %v, %v", empty, err)
	}
}

func TestDirectoryIsClosedOnce(t *testing.T) {
	dir, err := openDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed again: %v, want %v: the number may be another's by now", err, os.ErrClosed)
	}
	if _, err := statAt(dir, "."); err == nil {
		t.Error("a closed directory has entries")
	}
}

// Nothing else closes a descriptor that was forgotten.
func TestNothingStaysOpen(t *testing.T) {
	rt := newRuntime(t, Config{})
	trial := func() {
		sb := open(t, rt, "trial")
		makeMischief(t, sb)
		closeSandbox(t, sb)
	}
	trial() // opens what the process keeps
	before := openDescriptors(t)
	for range 3 {
		trial()
	}
	if after := openDescriptors(t); len(after) > len(before) {
		t.Errorf("open are %v, were %v", after, before)
	}
}

// makeMischief makes copies succeed and fail.
func makeMischief(t *testing.T, sb *Sandbox) {
	t.Helper()
	file := &tar.Header{Name: "sub/deep/file", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1}
	through := &tar.Header{Name: "link/file", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1}
	for _, p := range []runtime.Place{runtime.Input, runtime.Verdict, runtime.Workdir} {
		if err := sb.CopyIn(t.Context(), p, tarOf(file, "x"), runtime.CopyOptions{Fresh: p != runtime.Workdir}); err != nil {
			t.Fatal(err)
		}
		sh(t, sb, `cd '`+sb.Path(p)+`' && ln -s sub link && mkfifo sub/fifo`)
		if err := sb.CopyIn(t.Context(), p, tarOf(through, "x"), runtime.CopyOptions{}); err == nil {
			t.Error("written through a symlink")
		}
		if err := sb.CopyIn(t.Context(), p, nil, runtime.CopyOptions{Under: "link"}); err == nil {
			t.Error("written below a symlink")
		}
		for _, name := range []string{".", "sub/deep/file", "sub/fifo", "link/file", "sub/missing", "missing/sub"} {
			if c, err := sb.CopyOut(t.Context(), p, name, runtime.CopyLimits{}); err == nil {
				c.Close()
			}
		}
	}
	if err := sb.CopyIn(t.Context(), runtime.Input, nil, runtime.CopyOptions{Gone: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := sb.CopyOut(t.Context(), runtime.Input, ".", runtime.CopyLimits{}); !errors.Is(err, runtime.ErrNotExist) {
		t.Errorf("a place that is gone: %v", err)
	}
	_, _ = sb.Exec(t.Context(), runtime.Command{Argv: []string{"/nowhere"}, Stdout: os.Stderr, Stderr: &discard{}})
}

type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }

func openDescriptors(t *testing.T) []string {
	t.Helper()
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skipf("this system doesn't list them: %v", err)
	}
	var open []string
	for _, n := range names {
		open = append(open, n.Name())
	}
	return open
}

// What is missing in a sandbox that is lost is not said to be missing in it: that would pass
// for what its programs left.
func TestCopyOutOfALostSandbox(t *testing.T) {
	rt := newRuntime(t, Config{})
	sb := open(t, rt, "trial")
	if err := sb.CopyIn(t.Context(), runtime.Verdict, nil, runtime.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(sb.Path(runtime.Verdict), "reward.txt"), "1")
	moved := sb.sidePath + "-moved"
	if err := os.Rename(sb.sidePath, moved); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".", "reward.txt", "missing", "missing/sub"} {
		c, err := sb.CopyOut(t.Context(), runtime.Verdict, name, runtime.CopyLimits{})
		if err == nil {
			c.Close()
		}
		if !errors.Is(err, runtime.ErrLost) || errors.Is(err, runtime.ErrNotExist) {
			t.Errorf("%s: %v, want %v alone", name, err, runtime.ErrLost)
		}
	}
	if err := os.Rename(moved, sb.sidePath); err != nil {
		t.Fatal(err)
	}
	closeSandbox(t, sb)
}

// tarOfAll has an x in each file.
func tarOfAll(t *testing.T, headers []*tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		err := w.WriteHeader(h)
		if err == nil && h.Size > 0 {
			_, err = io.WriteString(w, "x")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// Entries that jump between directories, and directories that can't be written to.
func TestUnpackGoesBackAndForth(t *testing.T) {
	rt := newRuntime(t, Config{})
	sb := open(t, rt, "trial")
	var headers []*tar.Header
	for _, name := range []string{"a/", "a/1", "b/c/2", "a/3", "4", "b/c/5", "b/6", "a/d/7"} {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o640, Size: 1}
		if name == "a/" {
			h = &tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o500}
		}
		headers = append(headers, h)
	}
	if err := sb.CopyIn(t.Context(), runtime.Workdir, tarOfAll(t, headers), runtime.CopyOptions{Under: "in/here"}); err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(sb.Path(runtime.Workdir), "in/here")
	for _, h := range headers[1:] {
		if info, err := os.Stat(filepath.Join(top, h.Name)); err != nil || info.Mode() != 0o640 || info.Size() != 1 {
			t.Errorf("%s: %v, %v", h.Name, info, err)
		}
	}
	if info, err := os.Stat(filepath.Join(top, "a")); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("a: %v, %v", info, err)
	}
	closeSandbox(t, sb)
}
