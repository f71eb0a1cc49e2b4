// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

func TestConfig(t *testing.T) {
	err := Config{KillGrace: -1, CloseTimeout: -time.Second, SkippedCap: -2}.WithDefaults().Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"root is empty", "store is empty", "kill grace is -1ns", "close timeout is -1s", "skipped cap is -2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	t.Setenv("PATH", "")
	if c := (Config{}).WithDefaults(); c.Path != usualPath || c.KillTimeout != 10*time.Second || c.KillGrace != 0 {
		t.Errorf("defaults: %+v", c)
	}
	if _, err := New(Config{Root: "/", Store: "s"}); err == nil {
		t.Error("the root directory was taken")
	}
	file := filepath.Join(t.TempDir(), "file")
	mustWrite(t, file, "")
	if _, err := New(Config{Root: file, Store: "s"}); err == nil {
		t.Error("a file was taken for a directory")
	}
}

func TestRootIsMade(t *testing.T) {
	top := t.TempDir()
	if err := os.Symlink(top, filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	rt := newRuntime(t, Config{Root: filepath.Join(top, "link", "boxes")})
	want, err := filepath.EvalSymlinks(filepath.Join(top, "boxes"))
	if err != nil {
		t.Fatal(err)
	}
	if rt.cfg.Root != want {
		t.Errorf("root %s, want %s", rt.cfg.Root, want)
	}
	info, err := os.Stat(want)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v; want it for this user only", info.Mode(), err)
	}
}

func TestOptionsAndStacksAreRefused(t *testing.T) {
	rt := newRuntime(t, Config{})
	for what, spec := range map[string]runtime.RunSpec{
		"options.fast": {Options: map[string]any{"fast": true}},
		"stack":        {Stack: "compose.yaml"},
	} {
		_, err := rt.Prepare(t.Context(), spec)
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := rt.Prepare(t.Context(), runtime.RunSpec{Store: "another"}); err == nil {
		t.Error("a run of another store was taken")
	}
}
