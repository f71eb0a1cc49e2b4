// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// What has the name and is not a dead sandbox of our store stays as it is.
func TestOpenTouchesNothingOfOthers(t *testing.T) {
	const name = "taken"
	for what, plant := range map[string]func(t *testing.T, root string){
		"a directory without a record": func(t *testing.T, root string) {
			mkdir(t, root, name)
			mustWrite(t, filepath.Join(root, name, "file"), "precious")
		},
		"an empty directory": func(t *testing.T, root string) { mkdir(t, root, name) },
		"a file":             func(t *testing.T, root string) { mustWrite(t, filepath.Join(root, name), "precious") },
		"a symlink": func(t *testing.T, root string) {
			if err := os.Symlink("/etc", filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		},
		"a side directory with a torn record": func(t *testing.T, root string) {
			mkdir(t, root, name+sideSuffix)
			mustWrite(t, filepath.Join(root, name+sideSuffix, recordName), `{"version":1,"na`)
		},
		"a side directory without a record": func(t *testing.T, root string) {
			mkdir(t, root, name+sideSuffix)
			mustWrite(t, filepath.Join(root, name+sideSuffix, "file"), "precious")
		},
		"a file for a side directory": func(t *testing.T, root string) {
			mustWrite(t, filepath.Join(root, name+sideSuffix), "precious")
		},
		"a symlink for a side directory": func(t *testing.T, root string) {
			if err := os.Symlink("/etc", filepath.Join(root, name+sideSuffix)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			rt := newRuntime(t, Config{})
			plant(t, rt.cfg.Root)
			before := snapshot(t, rt.cfg.Root)
			_, err := tryOpen(t, rt, testSpec(name))
			if c := wantConflict(t, err); c.Name != name {
				t.Errorf("conflict about %q, want %q", c.Name, name)
			}
			if diff := cmp.Diff(before, snapshot(t, rt.cfg.Root)); diff != "" {
				t.Errorf("the root (-before +after):\n%s", diff)
			}
		})
	}
}

// An empty side directory is what an interrupted demolition leaves last.
func TestOpenOverAnEmptySide(t *testing.T) {
	rt := newRuntime(t, Config{})
	mkdir(t, rt.cfg.Root, "xy"+sideSuffix)
	sh(t, open(t, rt, "xy"), "echo ok >file")
}

func mkdir(t *testing.T, root, name string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
		t.Fatal(err)
	}
}

// snapshot describes everything below a directory.
func snapshot(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		all[path] = fmt.Sprintf("%v inode %d", d.Type(), st.Ino)
		if d.Type().IsRegular() {
			all[path] += " " + mustRead(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Opening, closing and listing at once, by several workers, never makes two owners.
func TestNameHasOneOwner(t *testing.T) {
	root := t.TempDir()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		owner int
		won   int
	)
	for worker := range 8 {
		rt := newRuntime(t, Config{Root: root})
		wg.Go(func() {
			for range 30 {
				if _, err := rt.List(context.Background()); err != nil {
					t.Errorf("list: %v", err)
				}
				sb, err := tryOpen(t, rt, testSpec("one"))
				if err != nil {
					if conflict := (*runtime.ConflictError)(nil); !errors.As(err, &conflict) {
						t.Errorf("worker %d: %v", worker, err)
					}
					continue
				}
				mu.Lock()
				if owner++; owner != 1 {
					t.Errorf("%d owners at once", owner)
				}
				won++
				mu.Unlock()
				if err := sb.Alive(context.Background()); err != nil {
					t.Errorf("worker %d: %v", worker, err)
				}
				mu.Lock()
				owner--
				mu.Unlock()
				closeSandbox(t, sb)
			}
		})
	}
	wg.Wait()
	if won == 0 {
		t.Error("nobody ever had the name")
	}
	if left := entriesOf(t, root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A sandbox whose side directory was removed or replaced is lost; its Close removes
// nothing that took its place.
func TestReplacedSideDirectory(t *testing.T) {
	rt := newRuntime(t, Config{})
	sb := open(t, rt, "xy")
	side := filepath.Join(rt.cfg.Root, "xy"+sideSuffix)
	if err := os.RemoveAll(side); err != nil {
		t.Fatal(err)
	}
	mkdir(t, rt.cfg.Root, "xy"+sideSuffix)
	mustWrite(t, filepath.Join(side, "file"), "somebody else's")
	if err := sb.Alive(t.Context()); !errors.Is(err, runtime.ErrLost) {
		t.Errorf("Alive: %v, want ErrLost", err)
	}
	if _, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"true"}}); !errors.Is(err, runtime.ErrLost) {
		t.Errorf("Exec: %v, want ErrLost", err)
	}
	closeSandbox(t, sb)
	if got := mustRead(t, filepath.Join(side, "file")); got != "somebody else's" {
		t.Errorf("the file reads %q", got)
	}
}

func TestDestroyRefusesForeignHandles(t *testing.T) {
	rt := newRuntime(t, Config{})
	good := open(t, rt, "xy").Handle()
	for what, edit := range map[string]func(*runtime.Handle){
		"another runtime":      func(h *runtime.Handle) { h.Runtime = "docker" },
		"another kind":         func(h *runtime.Handle) { h.Kind = "container" },
		"another directory":    func(h *runtime.Handle) { h.ID = "/tmp/x" },
		"a path with dots":     func(h *runtime.Handle) { h.ID = rt.cfg.Root + "/.." },
		"the root itself":      func(h *runtime.Handle) { h.ID = rt.cfg.Root },
		"no path":              func(h *runtime.Handle) { h.ID = "" },
		"a staging that isn't": func(h *runtime.Handle) { h.Kind = kindStaging },
	} {
		h := good
		edit(&h)
		if err := rt.Destroy(t.Context(), h); err == nil {
			t.Errorf("%s: no error for %+v", what, h)
		}
	}
	other := good
	other.Proof = "1.2.3"
	if err := rt.Destroy(t.Context(), other); err != nil {
		t.Errorf("a handle of what is gone: %v", err)
	}
	if len(entriesOf(t, rt.cfg.Root)) != 2 {
		t.Error("the sandbox is gone")
	}
}

// What a crash leaves in the middle of Open or Destroy is listed, and destroyed by
// its handle.
func TestHalfMade(t *testing.T) {
	rt := newRuntime(t, Config{})
	root, err := rt.claims.openRoot()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	staged, _, err := rt.claims.stage(root, "half", runtime.Labels{Run: "r"})
	if err != nil {
		t.Fatal(err)
	}
	staged.release()
	deposed := open(t, rt, "old")
	sh(t, deposed, "echo x >file")
	deposed.estate.depose(root, "old"+sideSuffix)

	found, err := rt.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, r := range found {
		kinds[r.Name] = fmt.Sprintf("%s live=%v", r.Handle.Kind, r.Live)
		if err := rt.Destroy(t.Context(), r.Handle); err != nil {
			t.Error(err)
		}
	}
	want := map[string]string{"half": "staging live=false", "old": "remains live=true"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if left := entriesOf(t, rt.cfg.Root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The instants without a record leave empty directories, which the next start removes.
func TestNewTidiesUp(t *testing.T) {
	rt := newRuntime(t, Config{})
	for _, d := range []string{"aa@new-1/work", "aa@new-1/tmp", "bb@side", "cc@new-2/work/sub", "dd@new-3", "e"} {
		if err := os.MkdirAll(filepath.Join(rt.cfg.Root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	open(t, rt, "living")
	before := entriesOf(t, rt.cfg.Root)
	if _, err := rt.claims.tidy(time.Now(), false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, entriesOf(t, rt.cfg.Root)); diff != "" {
		t.Errorf("young directories (-before +after):\n%s", diff)
	}
	old := time.Now().Add(2 * tidyAge)
	would, err := rt.claims.tidy(old, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, entriesOf(t, rt.cfg.Root)); diff != "" {
		t.Errorf("after a dry run (-before +after):\n%s", diff)
	}
	did, err := rt.claims.tidy(old, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"aa@new-1", "bb@side", "dd@new-3"}, prunedNames(did)); diff != "" {
		t.Errorf("said to be removed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(prunedNames(did), prunedNames(would)); diff != "" {
		t.Errorf("the dry run said something else (-did +would):\n%s", diff)
	}
	want := []string{"cc@new-2", "e", "living", "living@side"}
	if diff := cmp.Diff(want, entriesOf(t, rt.cfg.Root)); diff != "" {
		t.Errorf("below the root (-want +got):\n%s", diff)
	}
}

func prunedNames(list []runtime.Pruned) []string {
	var names []string
	for _, p := range list {
		names = append(names, filepath.Base(p.ID))
	}
	slices.Sort(names)
	return names
}

func FuzzReadRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"store":"s","name":"xy","nonce":"n","workdir":{"inode":1}}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte("\x00"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		mustWrite(t, filepath.Join(dir, recordName), string(data))
		side, err := openDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer side.Close()
		if rec, err := readRecord(side, "xy"); err == nil && (rec.Name != "xy" || rec.Nonce == "" || rec.Store == "") {
			t.Errorf("accepted %+v", rec)
		}
	})
}
