// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

// takeAway removes a place.
func (f *fixture) takeAway(sb runtime.Sandbox, p runtime.Place) {
	f.Helper()
	ctx, cancel := f.patience()
	defer cancel()
	if err := sb.CopyIn(ctx, p, nil, runtime.CopyOptions{Gone: true}); err != nil {
		f.Fatalf("CopyIn to %s, gone: %v", p, err)
	}
}

// missing checks that a place is not there, neither for programs nor for copies.
func (f *fixture) missing(sb runtime.Sandbox, p runtime.Place) {
	f.Helper()
	if r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Write(sb.Path(p)+"/x", ""))}); r.err == nil && r.exit.OK() {
		f.Errorf("%s is gone, and a program wrote into it", p)
	}
	if _, err := f.tryCopyOut(sb, p, ".", runtime.CopyLimits{}); !errors.Is(err, runtime.ErrNotExist) {
		f.Errorf("CopyOut of %s, which is gone: error %v, want ErrNotExist", p, err)
	}
}

func testGone(f *fixture) {
	sb := f.open()
	for _, p := range []runtime.Place{runtime.Tests, runtime.Solution, runtime.Verdict, runtime.Artifacts} {
		f.takeAway(sb, p) // what isn't there can go
		f.copyIn(sb, p, runtime.CopyOptions{}, file("old", "o", 0o644), file("sub/old", "o", 0o644))
		f.takeAway(sb, p)
		f.missing(sb, p)
		f.takeAway(sb, p)
		f.copyIn(sb, p, runtime.CopyOptions{}, file("new", "n", 0o644))
		want := map[string]entry{"new": file("new", "n", 0)}
		if diff := cmp.Diff(want, f.copyOut(sb, p, ".", runtime.CopyLimits{}).entries); diff != "" {
			f.Errorf("%s after it was gone (-want +got):\n%s", p, diff)
		}
	}

	f.run(sb, Write("work", "done"))
	ctx, cancel := f.patience()
	defer cancel()
	if err := sb.CopyIn(ctx, runtime.Workdir, nil, runtime.CopyOptions{Gone: true}); err == nil {
		f.Error("a workdir that is gone: no error")
	}
	if err := f.tryCopyIn(sb, runtime.Tests, runtime.CopyOptions{Gone: true}, file("x", "", 0o644)); err == nil {
		f.Error("a copy into a place that is to be gone: no error")
	}
	if got := f.run(sb, Read("work")); got != "done" {
		f.Errorf("after the refusals the workdir has %q", got)
	}
}

// testGoneOverLinks lets a program put a link in the stead of a place that is to go.
func testGoneOverLinks(f *fixture) {
	sb := f.open()
	f.copyIn(sb, runtime.Workdir, runtime.CopyOptions{}, file("victim/keep", "precious", 0o644))
	f.fresh(sb, runtime.Verdict)
	at := sb.Path(runtime.Verdict)
	r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Rename(at, "moved"), Symlink(sb.Path(runtime.Workdir)+"/victim", at))})
	if r.err != nil || !r.exit.OK() {
		f.Skipf("can't be planted here: exit %+v, error %v, stderr %q", r.exit, r.err, r.stderr)
	}
	f.takeAway(sb, runtime.Verdict)
	f.missing(sb, runtime.Verdict)
	if got := f.run(sb, Read("victim/keep")); got != "precious" {
		f.Errorf("what the link points at has %q", got)
	}
}

// testRoot takes files out that are named by where programs see them.
func testRoot(f *fixture) {
	sb := f.open()
	f.copyIn(sb, runtime.Input, runtime.CopyOptions{}, file("a", "1", 0o644), file("sub/b", "22", 0o644))
	at := strings.TrimPrefix(sb.Path(runtime.Input), "/")
	if !f.rt.Properties().Images {
		_, err := f.tryCopyOut(sb, runtime.Root, at, runtime.CopyLimits{})
		f.refusal("a copy out of the root", ask{feature: []string{"place"}}, err)
		return
	}
	for path, want := range map[string][]string{
		at:            {at + "/a", at + "/sub/b"},
		at + "/a":     {at + "/a"},
		at + "/sub/.": {at + "/sub/b"},
	} {
		if diff := cmp.Diff(want, f.copyOut(sb, runtime.Root, path, runtime.CopyLimits{}).names()); diff != "" {
			f.Errorf("CopyOut of %q from the root; names are relative to it (-want +got):\n%s", path, diff)
		}
	}
	got := f.copyOut(sb, runtime.Root, at, runtime.CopyLimits{FileBytes: 1})
	if _, ok := got.skipped[at+"/sub/b"]; len(got.names()) != 1 || !ok || got.total != 1 {
		f.Errorf("with a limit for a file: %v, left out %v", got.names(), slices.Sorted(maps.Keys(got.skipped)))
	}
	if _, err := f.tryCopyOut(sb, runtime.Root, at+"/missing", runtime.CopyLimits{}); !errors.Is(err, runtime.ErrNotExist) {
		f.Errorf("CopyOut of what isn't there: error %v, want ErrNotExist", err)
	}
	for _, path := range []string{"/" + at, "../" + at} {
		_, err := f.tryCopyOut(sb, runtime.Root, path, runtime.CopyLimits{})
		wantError[*runtime.PathError](f, "CopyOut of "+path+" from the root", err)
	}
	if err := f.tryCopyIn(sb, runtime.Root, runtime.CopyOptions{}, file("x", "", 0o644)); err == nil {
		f.Error("a copy into the root: no error")
	}
}

func testSpecWorkdir(f *fixture) {
	const workdir = "/suite/deep/workdir"
	set := func(s *runtime.Spec) { s.Workdir = workdir }
	if !f.rt.Properties().Images {
		f.openFails("a workdir", f.spec(set), func(err error) { f.refusal("a workdir", ask{feature: []string{"workdir"}}, err) })
		return
	}
	sb := f.open(set)
	if got := sb.Path(runtime.Workdir); got != workdir {
		f.Errorf("Path(workdir) = %q, want %q", got, workdir)
	}
	f.copyIn(sb, runtime.Workdir, runtime.CopyOptions{}, file("in", "1", 0o644))
	if got := f.run(sb, Pwd(), Read("in"), Write("out", "2")); got != workdir+"\n1" {
		f.Errorf("a program in the workdir prints %q", got)
	}
	want := map[string]entry{"out": file("out", "2", 0)}
	if diff := cmp.Diff(want, f.copyOut(sb, runtime.Workdir, "out", runtime.CopyLimits{}).entries); diff != "" {
		f.Errorf("what it wrote (-want +got):\n%s", diff)
	}
}

func testDescribed(f *fixture) {
	sb := f.open()
	d, ok := sb.(runtime.Described)
	if !ok {
		if f.rt.Properties().Images {
			f.Error("sandboxes are made from images, and can't describe them: want a runtime.Described")
		}
		return
	}
	before := d.Describe()
	origins := []string{"", runtime.ImagePresent, runtime.ImagePulled, runtime.ImageBuilt}
	for _, image := range before.Images {
		if !slices.Contains(origins, image.Origin) {
			f.Errorf("image %+v: want an origin of %q", image, origins)
		}
	}
	if f.h.Spec.Image.Ref != "" && (len(before.Images) == 0 || before.Images[0].Ref != f.h.Spec.Image.Ref || before.Images[0].ID == "") {
		f.Errorf("%+v: want image %s with its id", before, f.h.Spec.Image.Ref)
	}
	f.close(sb)
	if diff := cmp.Diff(before, d.Describe()); diff != "" {
		f.Errorf("after Close it is described otherwise (-before +after):\n%s", diff)
	}
}
