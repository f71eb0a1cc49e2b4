// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

// TestDisk copies into and out of a disk that the host doesn't have mounted.
func TestDisk(t *testing.T) {
	root := t.TempDir()
	rt := nestedRuntime(t, Config{Root: root})
	sb := openWith(t, rt, nil, func(s *runtime.Spec) { s.Resources.Disk = 1 << 20 })
	for _, in := range []struct {
		place runtime.Place
		tar   io.Reader
		fresh bool
	}{{runtime.Workdir, tarFile("a/b", "in", 0o644), false}, {runtime.Tests, tarFile("check", "tests", 0o644), true}, {runtime.Verdict, nil, true}} {
		if err := sb.CopyIn(t.Context(), in.place, in.tar, runtime.CopyOptions{Fresh: in.fresh}); err != nil {
			t.Fatal(err)
		}
	}
	copied := func(p runtime.Place, name string) string {
		return copyOut(t, sb, p, ".", runtime.CopyLimits{}).data[name]
	}
	if got := sh(t, sb, "cat a/b; cat "+sb.Path(runtime.Tests)+"/check; echo 1 >"+sb.Path(runtime.Verdict)+"/reward.txt; echo t >$TMPDIR/t; cat /tmp/t"); got != "intestst\n" {
		t.Errorf("a program sees %q", got)
	}
	if got := copied(runtime.Verdict, "reward.txt"); got != "1\n" {
		t.Errorf("copied out: %q", got)
	}
	sh(t, sb, "chmod 000 a .")
	if got := copied(runtime.Workdir, "a/b"); got != "in" {
		t.Errorf("copied out of a workdir without permissions: %q", got)
	}
	if err := sb.Alive(t.Context()); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Join(root, sb.Name())); len(left) > 0 {
		t.Errorf("on the host's disk: %v", left)
	}
	large := tarFile("large", strings.Repeat("x", 3<<20), 0o644)
	if err := sb.CopyIn(t.Context(), runtime.Workdir, large, runtime.CopyOptions{}); err == nil {
		t.Error("3 MiB went onto a disk of 1")
	}

	// A kept one is found again on the host's disk, and goes on with one of its own.
	sh(t, sb, "chmod 755 a .; rm -f large; ln -s /nowhere link; echo kept >file")
	// What programs call like something of ours stays theirs.
	sh(t, sb, "echo forged >"+sb.sidePath+"/"+recordName)
	if err := sb.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, filepath.Join(root, sb.Name(), "file")); got != "kept\n" {
		t.Errorf("kept: %q", got)
	}
	attached, err := rt.Attach(t.Context(), sb.Handle())
	if err != nil {
		t.Fatal(err)
	}
	again := attached.(*Sandbox)
	defer closeSandbox(t, again)
	if got := sh(t, again, "cat file a/b; readlink link; cat /tmp/t; cat /dev/zero >big 2>/dev/null || echo full"); got != "kept\nin/nowhere\nt\nfull\n" {
		t.Errorf("after Attach a program sees %q", got)
	}
}
