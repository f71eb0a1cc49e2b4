// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/app"
)

func acquire(t *testing.T, root string) *Dir {
	t.Helper()
	d, err := Acquire(root, "tidemill run")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOneOwnerAtATime(t *testing.T) {
	root := filepath.Join(t.TempDir(), "made", "on demand")
	before := time.Now().Add(-time.Second)
	d := acquire(t, root)

	_, err := Acquire(root, "tidemill run")
	busy, ok := errors.AsType[*BusyError](err)
	if !ok {
		t.Fatalf("a second owner: %v; want a BusyError", err)
	}
	if o := busy.Owner; o.PID != os.Getpid() || o.Command != "tidemill run" || o.Since.Before(before) || o.Since.After(time.Now()) {
		t.Errorf("the owner is said to be %+v", o)
	}

	if err := d.Release(); err != nil {
		t.Fatal(err)
	}
	if err := acquire(t, root).Release(); err != nil {
		t.Fatal(err)
	}
}

// An owner that was killed is none.
func TestTheLockDiesWithItsOwner(t *testing.T) {
	root := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), ownerVar+"="+root)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "owner\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	_, err = Acquire(root, "tidemill run")
	busy, ok := errors.AsType[*BusyError](err)
	if !ok || busy.Owner.PID != cmd.Process.Pid || busy.Owner.Command != "tidemill test" {
		t.Fatalf("beside a living owner: %v; want a BusyError with process %d", err, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := acquire(t, root).Release(); err != nil {
		t.Fatal(err)
	}
}

// Between the lock and the signature a second one learns at least that it is second, and
// whatever stands in the lock file harms nobody.
func TestAnOwnerThatHasNotSignedYet(t *testing.T) {
	for _, text := range []string{"", "{", "null", "[1, 2]", strings.Repeat("x", 1<<20)} {
		root := t.TempDir()
		d := acquire(t, root)
		if err := os.WriteFile(d.path("lock"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Acquire(root, "tidemill run")
		if busy, ok := errors.AsType[*BusyError](err); !ok || busy.Owner != (Owner{}) {
			t.Errorf("with %.20q in the lock file: %v", text, err)
		} else if want := root + " is in use by another process"; busy.Error() != want {
			t.Errorf("said %q; want %q", busy, want)
		}
		if err := d.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatCantBeADataDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	locked := filepath.Join(t.TempDir(), "locked")
	if err := os.Mkdir(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	links := t.TempDir()
	nowhere, loop := filepath.Join(links, "nowhere"), filepath.Join(links, "loop")
	if err := errors.Join(os.Symlink("none", nowhere), os.Symlink("loop", loop)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"a file":              {file, "it or something above it is a file"},
		"below a file":        {filepath.Join(file, "below"), "it or something above it is a file"},
		"below a locked one":  {filepath.Join(locked, "below"), "this user may not write there"},
		"a name without end":  {filepath.Join(t.TempDir(), strings.Repeat("x", 300)), "file name too long"},
		"a name with a zero":  {"a\x00b", "invalid argument"},
		"a place of the kind": {"/proc/self/nowhere", "can't be a data directory"},
		"a link to nowhere":   {nowhere, "a symlink that leads nowhere"},
		"a link to itself":    {loop, "a symlink that leads nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "locked") && os.Geteuid() == 0 {
				t.Skip("root may write everywhere")
			}
			d, err := Acquire(c.path, "tidemill run")
			if err == nil {
				t.Fatal(d.Release())
			}
			if _, ok := errors.AsType[*UnusableError](err); !ok || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v; want an UnusableError with %q", err, c.want)
			}
			if ce, ok := errors.AsType[*app.CodeError](Explain(err, "data")); !ok || ce.Code != app.ExitUsage {
				t.Errorf("explained as %v; want bad input", Explain(err, "data"))
			}
		})
	}
}

// Reset throws away what can be rebuilt, and nothing else.
func TestReset(t *testing.T) {
	d := acquire(t, t.TempDir())
	defer d.Release()
	touch := func(path string) string {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	goes := []string{touch(filepath.Join(d.Queue(), "stream", "1.blk")), touch(filepath.Join(d.Temp(), "archive"))}
	stays := []string{
		touch(filepath.Join(d.Store(), "store.json")), touch(filepath.Join(d.Work(), "sandbox")),
		touch(filepath.Join(d.Worker(), "packs", "sha")),
	}
	if err := d.Reset(); err != nil {
		t.Fatal(err)
	}
	for _, path := range goes {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there", path)
		}
	}
	for _, path := range append(stays, d.Queue(), d.Temp()) {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if err := d.Clear(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Queue()); !errors.Is(err, os.ErrNotExist) {
		t.Error("after Clear the queue is still there")
	}
}

// An owner notices that its directory is not what others would find: they may be working
// there by now.
func TestCheck(t *testing.T) {
	for what, spoil := range map[string]func(root string) error{
		"removed":          os.RemoveAll,
		"moved":            func(root string) error { return os.Rename(root, root+".moved") },
		"its lock removed": func(root string) error { return os.Remove(filepath.Join(root, hidden, "lock")) },
		"its lock replaced": func(root string) error {
			lock := filepath.Join(root, hidden, "lock")
			return errors.Join(os.Rename(lock, lock+".old"), os.WriteFile(lock, nil, 0o600))
		},
	} {
		t.Run(what, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "data")
			d := acquire(t, root)
			defer d.Release()
			if err := d.Check(); err != nil {
				t.Fatalf("untouched: %v", err)
			}
			if err := spoil(root); err != nil {
				t.Fatal(err)
			}
			if err := d.Check(); !errors.Is(err, ErrGone) {
				t.Errorf("got %v, want ErrGone", err)
			}
		})
	}
}
