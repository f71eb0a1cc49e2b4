// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

// copyOut returns the files of a copy, and what was left out.
func copyOut(t *testing.T, sb *Sandbox, p runtime.Place, name string, limits runtime.CopyLimits) (map[string]string, []runtime.Skipped) {
	t.Helper()
	c, err := sb.CopyOut(t.Context(), p, name, limits)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	files := map[string]string{}
	r := tar.NewReader(c)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = string(data)
		}
	}
	skipped, _ := c.Skipped()
	return files, skipped
}

func copyIn(t *testing.T, sb *Sandbox, p runtime.Place, opts runtime.CopyOptions, name, data string) error {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o640, Size: int64(len(data))}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return sb.CopyIn(t.Context(), p, &buf, opts)
}

// TestHardLinksComeOutAsFiles, each with its content and within the limits.
func TestHardLinksComeOutAsFiles(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t))
	sh(t, sb, "echo once > a; ln a b; mkdir d; ln a d/c; echo other > e; ln e f")
	files, skipped := copyOut(t, sb, runtime.Workdir, ".", runtime.CopyLimits{})
	want := map[string]string{"a": "once\n", "b": "once\n", "d/c": "once\n", "e": "other\n", "f": "other\n"}
	if diff := cmp.Diff(want, files); diff != "" || len(skipped) != 0 {
		t.Errorf("(-want +got):\n%s\nleft out: %v", diff, skipped)
	}
	files, skipped = copyOut(t, sb, runtime.Workdir, ".", runtime.CopyLimits{FileBytes: 5})
	if len(files) != 3 || len(skipped) != 2 {
		t.Errorf("with a limit for a file: %v, left out %v", files, skipped)
	}
	if files, _ = copyOut(t, sb, runtime.Workdir, "d/c", runtime.CopyLimits{}); files["d/c"] != "once\n" {
		t.Errorf("one of the names alone: %v", files)
	}
}

// TestHugeSparseFiles must not be read to their ends.
func TestHugeSparseFiles(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t, func(c *Config) { c.ReadPast = 32 << 20 }))
	sh(t, sb, "mkdir d; echo small > d/a; truncate -s 8000G d/b; echo small > d/c; truncate -s 1M d/aa")
	limits := runtime.CopyLimits{FileBytes: 1 << 20}
	files, skipped := copyOut(t, sb, runtime.Workdir, "d/b", limits)
	if len(files) != 0 || len(skipped) != 1 || skipped[0].Bytes != 8000<<30 {
		t.Errorf("a file of 8000 GiB: %v, left out %v", files, skipped)
	}
	files, skipped = copyOut(t, sb, runtime.Workdir, "d", limits)
	if files["d/a"] != "small\n" || len(files["d/aa"]) != 1<<20 || len(skipped) != 2 || !strings.Contains(skipped[1].Reason, "behind it") {
		t.Errorf("its directory: %d files, left out %v", len(files), skipped)
	}
	sh(t, sb, "echo and it is as good as before")
}

// TestOwners: what is copied in belongs to whom it should.
func TestOwners(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t), func(s *runtime.Spec) {
		s.Users = map[runtime.Phase]string{runtime.Agent: "1000", runtime.Grade: "0"}
		s.Workdir = "/made/for/it"
	})
	for _, step := range []struct {
		place runtime.Place
		opts  runtime.CopyOptions
		path  string
		want  string
	}{
		{runtime.Workdir, runtime.CopyOptions{Under: "sub"}, "/made/for/it /made/for/it/sub /made/for/it/sub/d/file", "1000:1000 755\n1000:1000 755\n1000:1000 640\n"},
		{runtime.Tests, runtime.CopyOptions{User: "0", Fresh: true, Private: true}, "/tests /tests/d/file", "0:0 700\n0:0 640\n"},
		{runtime.Verdict, runtime.CopyOptions{User: "4321:8765", Fresh: true}, "/logs /logs/verifier", "0:0 755\n4321:8765 755\n"},
		{runtime.Tests, runtime.CopyOptions{Private: true}, "/tests", "1000:1000 700\n"},
	} {
		if err := copyIn(t, sb, step.place, step.opts, "d/file", "x"); err != nil {
			t.Fatal(err)
		}
		if got := sh(t, sb, "stat -c '%u:%g %a' "+step.path, func(c *runtime.Command) { c.User = "0" }); got != step.want {
			t.Errorf("%s: %s belong to %q, want %q", step.place, step.path, got, step.want)
		}
	}
	err := copyIn(t, sb, runtime.Tests, runtime.CopyOptions{User: "somebody"}, "f", "")
	if u := (*runtime.UnsupportedError)(nil); !errors.As(err, &u) || u.Feature != "user" {
		t.Errorf("a user that there isn't: %v", err)
	}
}

// TestPlantingWhileCopying has an agent put symlinks in the grader's way all the time.
func TestPlantingWhileCopying(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t))
	sh(t, sb, "mkdir -p /victim/verifier /victim/tests; echo precious > /victim/verifier/reward.txt; cp /victim/verifier/reward.txt /victim/tests")
	sh(t, sb, `(while :; do
  rm -rf /logs /tests; ln -s /victim /logs; ln -s /victim/tests /tests
  rm -rf /logs; mkdir /logs; ln -s /victim/verifier /logs/verifier
done) >/dev/null 2>&1 &`)
	for range 10 {
		for _, p := range []runtime.Place{runtime.Verdict, runtime.Tests} {
			err := copyIn(t, sb, p, runtime.CopyOptions{Fresh: true}, "reward.txt", "forged")
			if pathErr := (*runtime.PathError)(nil); err != nil && !errors.As(err, &pathErr) {
				t.Fatalf("%s: %v, want success or a PathError", p, err)
			}
		}
	}
	if got := sh(t, sb, "cat /victim/*/reward.txt"); got != "precious\nprecious\n" {
		t.Errorf("what the links point at reads %q", got)
	}
}

// TestRemovedWorkdir is the agent's result, and no lost sandbox.
func TestRemovedWorkdir(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t))
	for _, script := range []string{
		"rmdir /app", "rmdir /app; ln -s /bin /app", "rmdir /app; echo file > /app", "mv /app /elsewhere; ln -s /elsewhere /app",
	} {
		exit, out := try(t, sb, script, func(c *runtime.Command) { c.Dir = "/" })
		if !exit.OK() {
			t.Fatalf("%s: %s", script, out)
		}
		files, _ := copyOut(t, sb, runtime.Workdir, ".", runtime.CopyLimits{})
		if len(files) != 0 {
			t.Errorf("after %q the workdir has %v", script, files)
		}
		if got := sh(t, sb, "pwd -P; ls"); got != "/app\n" {
			t.Errorf("after %q a command is in %q", script, got)
		}
		sh(t, sb, "rm -rf /elsewhere")
		if err := copyIn(t, sb, runtime.Workdir, runtime.CopyOptions{}, "f", "x"); err != nil {
			t.Errorf("after %q: %v", script, err)
		}
		sh(t, sb, "rm f")
	}
	sh(t, sb, "rmdir /app", func(c *runtime.Command) { c.Dir = "/" })
	if got := sh(t, sb, "pwd"); got != "/app\n" {
		t.Errorf("the next command is in %q", got)
	}
}
