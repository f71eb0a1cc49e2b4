// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"archive/tar"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

// A program of the same user can write-protect the directories that places are made in. It
// must not see to it in that way that there is no place for its verdict.
func TestPlacesInProtectedDirectories(t *testing.T) {
	for _, protected := range []string{"logs", "."} {
		t.Run(protected, func(t *testing.T) {
			rt := newRuntime(t, Config{})
			sb := open(t, rt, "protected")
			if err := sb.CopyIn(t.Context(), runtime.Verdict, nil, runtime.CopyOptions{}); err != nil {
				t.Fatal(err)
			}
			gone, dir := filepath.Join(sb.sidePath, "logs", "verifier"), filepath.Join(sb.sidePath, protected)
			if protected == "." {
				gone = filepath.Dir(gone)
			}
			if err := errors.Join(os.RemoveAll(gone), os.Chmod(dir, 0o555)); err != nil {
				t.Fatal(err)
			}
			asNobody(t, rt.cfg.Root, func() {
				if err := os.Mkdir(filepath.Join(dir, "mine"), 0o755); !errors.Is(err, os.ErrPermission) {
					t.Errorf("permissions don't bind here, so this shows nothing: %v", err)
				}
				if err := sb.CopyIn(t.Context(), runtime.Verdict, nil, runtime.CopyOptions{Fresh: true}); err != nil {
					t.Error(err)
				}
			})
			if names, err := os.ReadDir(sb.Path(runtime.Verdict)); err != nil || len(names) > 0 {
				t.Errorf("place of the verdict: %v, %v", names, err)
			}
			closeSandbox(t, sb)
		})
	}
}

// A spare that can't be moved where it is wanted is good for another one, and known.
func TestSpareThatCanNotBeMoved(t *testing.T) {
	rt := newRuntime(t, Config{})
	first := open(t, rt, "first")
	if err := first.CopyIn(t.Context(), runtime.Input, nil, runtime.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	closeSandbox(t, first)
	second := open(t, rt, "second")
	known := len(rt.claims.spares.names)
	if known == 0 {
		t.Skip("there are no spares on this system")
	}
	if err := os.Chmod(second.sidePath, 0o555); err != nil {
		t.Fatal(err)
	}
	asNobody(t, rt.cfg.Root, func() {
		if taken := rt.claims.spares.take(second.side, "input"); taken != nil {
			t.Error("permissions don't bind here, so this shows nothing")
			taken.Close()
		}
	})
	if got := len(rt.claims.spares.names); got != known {
		t.Errorf("%d spares are known, want %d", got, known)
	}
	closeSandbox(t, second)
}

// A name may have very many steps. Whoever wants no more waits for none of them.
func TestDeepNames(t *testing.T) {
	rt := newRuntime(t, Config{})
	sb := open(t, rt, "deep")
	defer closeSandbox(t, sb)
	name := strings.Repeat("a/", 1000) + "file"
	err := sb.CopyIn(t.Context(), runtime.Workdir, tarOf(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644}, ""), runtime.CopyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := copyOut(t, sb, runtime.Workdir, name, runtime.CopyLimits{}); len(got.names) != 1 {
		t.Errorf("copied %v", got.names)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	u := &unpacker{ctx: over, top: sb.side}
	if _, err := u.ensure("b/c"); !errors.Is(err, context.Canceled) {
		t.Errorf("made all the same: %v", err)
	}
	if _, err := os.Stat(filepath.Join(sb.sidePath, "b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory was made: %v", err)
	}
}
