// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// A program does what it can to be hard to remove.
func TestCloseRemovesStubbornTrees(t *testing.T) {
	outside := t.TempDir()
	mustWrite(t, filepath.Join(outside, "file"), "precious")
	rt := newRuntime(t, Config{})
	sb, err := tryOpen(t, rt, testSpec("xy"))
	if err != nil {
		t.Fatal(err)
	}
	sh(t, sb, `
mkdir -p ro/sub none/sub "$TMPDIR/ro"; echo x >ro/sub/f; echo x >none/sub/f; echo x >"$TMPDIR/ro/f"
chmod 500 ro/sub ro "$TMPDIR/ro"; chmod 0 none/sub none
ln -s `+outside+` link; ln -s `+outside+`/file link2; mkfifo fifo
`)
	deep := filepath.Join(sb.Path(runtime.Workdir), strings.Repeat("d/", 1800))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(deep, "bottom"), "x")
	for i := range 3 * removeBatch {
		mustWrite(t, filepath.Join(sb.Path(runtime.Workdir), itoa(i)), "x")
	}
	closeSandbox(t, sb)
	if left := entriesOf(t, rt.cfg.Root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if got := mustRead(t, filepath.Join(outside, "file")); got != "precious" {
		t.Errorf("outside reads %q", got)
	}
}

// The same as a user whom permissions bind.
func TestRemoveWithoutPrivileges(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"tree/ro/sub", "tree/none/sub"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, filepath.Join(dir, d, "f"), "x")
	}
	for d, mode := range map[string]os.FileMode{"tree/ro/sub": 0o500, "tree/ro": 0o500, "tree/none/sub": 0, "tree/none": 0} {
		if err := os.Chmod(filepath.Join(dir, d), mode); err != nil {
			t.Fatal(err)
		}
	}
	asNobody(t, dir, func() {
		if _, err := os.ReadDir(filepath.Join(dir, "tree/none")); !errors.Is(err, os.ErrPermission) {
			t.Errorf("permissions don't bind here, so this shows nothing: %v", err)
		}
		f, err := openDir(dir)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		if err := removeAt(t.Context(), f, "tree"); err != nil {
			t.Error(err)
		}
	})
	if left := entriesOf(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A root inside can bind a host directory into its workdir. Nothing on the other side
// is read or removed, and Close says what is in the way.
func TestMountsAreNotCrossed(t *testing.T) {
	outside := t.TempDir()
	mustWrite(t, filepath.Join(outside, "file"), "precious")
	rt := newRuntime(t, Config{})
	sb, err := tryOpen(t, rt, testSpec("xy"))
	if err != nil {
		t.Fatal(err)
	}
	point := filepath.Join(sb.Path(runtime.Workdir), "mnt")
	mkdir(t, sb.Path(runtime.Workdir), "mnt")
	mustWrite(t, filepath.Join(sb.Path(runtime.Workdir), "zzz"), "x")
	if err := bindMount(outside, point); err != nil {
		closeSandbox(t, sb)
		t.Skipf("can't mount here: %v", err)
	}
	got := copyOut(t, sb, runtime.Workdir, ".", runtime.CopyLimits{})
	if got.skipped["mnt"] != "on another mount" || len(got.names) != 1 {
		t.Errorf("copied %v, left out %v", got.names, got.skipped)
	}
	err = sb.Close(t.Context())
	if err == nil || !strings.Contains(err.Error(), "mnt") {
		t.Errorf("Close: %v, want an error that names the mount", err)
	}
	if got := mustRead(t, filepath.Join(outside, "file")); got != "precious" {
		t.Errorf("the other side reads %q", got)
	}
	if _, err := os.Stat(filepath.Join(sb.Path(runtime.Workdir), "zzz")); err == nil {
		t.Error("what could be removed is there")
	}
	if err := unix.Unmount(point, 0); err != nil {
		t.Fatal(err)
	}
	closeSandbox(t, sb) // tries again
	if left := entriesOf(t, rt.cfg.Root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
