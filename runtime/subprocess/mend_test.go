// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

// A program that removes or replaces its own workdir has done that to itself: the sandbox
// lives, the next command finds an empty workdir, and nothing is left in the end.
func TestWorkdirThatItsProgramsTookAway(t *testing.T) {
	for name, script := range map[string]string{
		"removed":                    `rm -rf "$PWD"`,
		"replaced by a directory":    `d=$PWD; rm -rf "$d"; mkdir "$d"; echo planted >"$d/file"`,
		"replaced by a file":         `d=$PWD; rm -rf "$d"; echo planted >"$d"`,
		"replaced by a symlink":      `d=$PWD; rm -rf "$d"; ln -s /etc "$d"`,
		"replaced by a dangling one": `d=$PWD; rm -rf "$d"; ln -s /nowhere "$d"`,
	} {
		t.Run(name, func(t *testing.T) {
			rt := newRuntime(t, Config{})
			sb := open(t, rt, "trial")
			ctx := t.Context()
			if exit, err := sb.Exec(ctx, runtime.Command{Argv: []string{"sh", "-c", script}}); err != nil || !exit.OK() {
				t.Fatalf("exit %+v, %v", exit, err)
			}
			if err := sb.Alive(ctx); err != nil {
				t.Errorf("Alive: %v", err)
			}
			exit, err := sb.Exec(ctx, runtime.Command{Argv: []string{"sh", "-c", `test -z "$(ls -A)" && test -d "$PWD"`}})
			if err != nil || !exit.OK() {
				t.Errorf("a command in the workdir made anew: exit %+v, %v", exit, err)
			}
			c, err := sb.CopyOut(ctx, runtime.Workdir, ".", runtime.CopyLimits{})
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			if err := sb.Close(ctx); err != nil {
				t.Error(err)
			}
			if left := entriesOf(t, rt.cfg.Root); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if _, err := os.Stat("/etc/passwd"); err != nil {
				t.Error(err)
			}
		})
	}
}

// The same at the very end, with nothing that looks in between.
func TestCloseAfterTheWorkdirWasReplaced(t *testing.T) {
	rt := newRuntime(t, Config{})
	sb := open(t, rt, "trial")
	script := `d=$PWD; rm -rf "$d"; mkdir "$d"; echo planted >"$d/file"`
	if exit, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"sh", "-c", script}}); err != nil || !exit.OK() {
		t.Fatalf("exit %+v, %v", exit, err)
	}
	if err := sb.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(rt.cfg.Root, "trial")); !os.IsNotExist(err) {
		t.Errorf("the planted directory is still there: %v", err)
	}
}
