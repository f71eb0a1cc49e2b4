// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// spareDirs lists the directories of spares below a root.
func spareDirs(t *testing.T, root string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(root, "*"+spareInfix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return st.Ino
}

// spareablePlaces are what is kept of a side directory.
var spareablePlaces = []string{"logs/agent", "logs/verifier", "logs/artifacts", "logs", "input", "tests", tmpName}

// makePlaces makes the places that trials have, with a file in each.
func makePlaces(t *testing.T, sb *Sandbox) {
	t.Helper()
	for _, p := range []runtime.Place{runtime.AgentLogs, runtime.Verdict, runtime.Artifacts, runtime.Input, runtime.Tests} {
		if err := sb.CopyIn(t.Context(), p, nil, runtime.CopyOptions{}); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, filepath.Join(sb.Path(p), "file"), "x")
	}
}

func inodesOf(t *testing.T, sb *Sandbox) map[uint64]bool {
	t.Helper()
	inodes := map[uint64]bool{}
	for _, place := range spareablePlaces {
		inodes[inodeOf(t, filepath.Join(sb.sidePath, place))] = true
	}
	return inodes
}

func TestSparesServeTheNextSandbox(t *testing.T) {
	rt := newRuntime(t, Config{})
	first := open(t, rt, "first")
	makePlaces(t, first)
	was := inodesOf(t, first)
	closeSandbox(t, first)
	if n := len(rt.claims.spares.names); n != len(spareablePlaces) {
		t.Fatalf("%d spares of %d directories", n, len(spareablePlaces))
	}
	before := time.Now().Add(-time.Second)
	second := open(t, rt, "second")
	makePlaces(t, second)
	for inode := range inodesOf(t, second) {
		if !was[inode] {
			t.Errorf("inode %d is new, want one of %v", inode, was)
		}
	}
	for _, place := range []string{"input", "logs/verifier"} {
		path := filepath.Join(second.sidePath, place)
		if entries := entriesOf(t, path); !slices.Equal(entries, []string{"file"}) {
			t.Errorf("%s has %q, want what was put there now", place, entries)
		}
		if info, err := os.Stat(path); err != nil || info.ModTime().Before(before) || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v; want it as if new", place, info, err)
		}
	}
	closeSandbox(t, second)
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if left := spareDirs(t, rt.cfg.Root); len(left) > 0 {
		t.Errorf("after the runtime's end: %v", left)
	}
}

// What a program did to a directory must not reach the next sandbox.
func TestUnfitSpares(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		spare   bool // the directory is mended, or not known to be unfit until it is taken
	}{
		"nothing":          {":", true},
		"mode":             {`chmod 777 "$DIR"`, true},
		"files":            {`touch "$DIR/a"; mkdir -p "$DIR/b/c"; chmod 0 "$DIR/b"`, true},
		"owner":            {`chown 1234 "$DIR"`, false},
		"an attribute":     {":", true},
		"grown":            {`cd "$DIR"; for i in $(seq 1000); do : >a-rather-long-name-$i; done`, false},
		"a symlink":        {`rmdir "$DIR"; ln -s /tmp "$DIR"`, false},
		"another mode bit": {`chmod g+s "$DIR"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			rt := newRuntime(t, Config{})
			sb := open(t, rt, "trial")
			if err := sb.CopyIn(t.Context(), runtime.Input, nil, runtime.CopyOptions{}); err != nil {
				t.Fatal(err)
			}
			dir := sb.Path(runtime.Input)
			if name == "owner" && os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			small := sizeOf(t, dir)
			if name == "an attribute" {
				if err := unix.Setxattr(dir, "user.x", []byte("y"), 0); errors.Is(err, unix.ENOTSUP) {
					t.Skip("this file system has no extended attributes")
				} else if err != nil {
					t.Fatal(err)
				}
			}
			sh(t, sb, "DIR='"+dir+"'; "+c.program)
			if name == "grown" && sizeOf(t, dir) == small {
				t.Skip("directories don't grow on this file system")
			}
			closeSandbox(t, sb)
			// The temporary directory is one.
			if got := len(rt.claims.spares.names) == 2; got != c.spare {
				t.Errorf("it is kept: %v, want %v", got, c.spare)
			}
			next := open(t, rt, "next")
			if err := next.CopyIn(t.Context(), runtime.Input, nil, runtime.CopyOptions{}); err != nil {
				t.Fatal(err)
			}
			if entries := entriesOf(t, next.Path(runtime.Input)); len(entries) > 0 {
				t.Errorf("it has %q", entries)
			}
			if n, err := unix.Listxattr(next.Path(runtime.Input), nil); n > 0 {
				t.Errorf("it has attributes: %d, %v", n, err)
			}
			if info, err := os.Lstat(next.Path(runtime.Input)); err != nil || info.Mode() != os.ModeDir|0o755 {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// Something that outlived its sandbox and writes into a spare spoils nothing.
func TestSpareThatIsNotEmptyAnyMore(t *testing.T) {
	rt := newRuntime(t, Config{})
	closeSandbox(t, open(t, rt, "first"))
	if len(rt.claims.spares.names) != 1 {
		t.Fatalf("spares %v, want the temporary directory", rt.claims.spares.names)
	}
	mustWrite(t, filepath.Join(spareDirs(t, rt.cfg.Root)[0], rt.claims.spares.names[0], "planted"), "x")
	next := open(t, rt, "next")
	if entries := entriesOf(t, filepath.Join(next.sidePath, tmpName)); len(entries) > 0 {
		t.Errorf("the next sandbox has %q", entries)
	}
	if left := rt.claims.spares.names; len(left) > 0 {
		t.Errorf("spares left: %v", left)
	}
}

// The spares of a process that was killed go with the next start; those of a living one stay.
func TestSparesOfTheDead(t *testing.T) {
	root := t.TempDir()
	alive := newRuntime(t, Config{Root: root})
	closeSandbox(t, open(t, alive, "trial"))
	dead := filepath.Join(root, "1"+spareInfix+"dead")
	if err := os.MkdirAll(filepath.Join(dead, "7"), 0o755); err != nil {
		t.Fatal(err)
	}
	newRuntime(t, Config{Root: root})
	if left := spareDirs(t, root); len(left) != 1 || left[0] == dead {
		t.Errorf("left: %v, want those of the living", left)
	}
}
