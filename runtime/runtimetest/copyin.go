// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

func testRoundTrip(f *fixture) {
	sb := f.open()
	in := []entry{
		file("bytes", allBytes(), 0o644),
		file("empty", "", 0o600),
		file("run.sh", "#!/bin/sh\n", 0o755),
		file("deep/er/file", "made its parents", 0o644),
		dir("hollow"),
		link("to-file", "bytes"),
		link("deep/up", "../run.sh"),
		link("dangling", "not/there/yet"),
		file("name with  spaces", "s", 0o644),
		file("ünï\ncode", "u", 0o644),
		file(strings.Repeat("long/", 40)+"name", "l", 0o644),
		file("big", strings.Repeat(allBytes(), 8192), 0o644), // 2 MiB
	}
	want := map[string]entry{}
	for _, e := range in {
		e.Mode &= 0o111
		if e.Type != tar.TypeReg {
			e.Mode = 0
		}
		want[e.Name] = e
	}
	for _, p := range runtime.Places {
		if p == runtime.Logs {
			continue // its own entries stand beside the places below it
		}
		f.copyIn(sb, p, runtime.CopyOptions{}, in...)
		got := f.copyOut(sb, p, ".", runtime.CopyLimits{})
		for name, e := range got.entries {
			if _, ok := want[name]; !ok && e.Type == tar.TypeDir {
				delete(got.entries, name) // parents may or may not have entries of their own
			}
		}
		if diff := cmp.Diff(want, got.entries); diff != "" {
			f.Errorf("%s came back otherwise (-in +out):\n%s", p, diff)
		}
		if got.total != 0 {
			f.Errorf("%s: %d entries left out: %v", p, got.total, got.skipped)
		}
	}
	// Programs see the same files.
	if got := f.run(sb, Read("deep/er/file"), Read(sb.Path(runtime.Tests)+"/to-file")); got != "made its parents"+allBytes() {
		f.Errorf("programs read %q", got)
	}
	// A second copy overwrites files and leaves the rest.
	f.copyIn(sb, runtime.Workdir, runtime.CopyOptions{}, file("bytes", "new", 0o644), dir("hollow"))
	if got := f.run(sb, Read("bytes"), Read("deep/er/file")); got != "newmade its parents" {
		f.Errorf("after a second copy programs read %q", got)
	}
}

func testCopyInUnder(f *fixture) {
	sb := f.open()
	f.copyIn(sb, runtime.Workdir, runtime.CopyOptions{Under: "a/b"}, file("./x", "1", 0o644), dir("."))
	f.copyIn(sb, runtime.Tests, runtime.CopyOptions{Under: "sub", Fresh: true}, file("y", "2", 0o644))
	if got := f.run(sb, Read("a/b/x"), Read(sb.Path(runtime.Tests)+"/sub/y")); got != "12" {
		f.Errorf("programs read %q, want 12", got)
	}
	for _, under := range []string{"..", "../x", "/abs", "a/../../x"} {
		err := f.tryCopyIn(sb, runtime.Workdir, runtime.CopyOptions{Under: under}, file("x", "", 0o644))
		wantError[*runtime.PathError](f, "Under "+under, err)
	}
}

func testCopyInRefuses(f *fixture) {
	for what, e := range map[string]entry{
		"an absolute name":           file("/abs", "x", 0o644),
		"dots":                       file("../up", "x", 0o644),
		"dots in the middle":         file("a/../../up", "x", 0o644),
		"dots as a directory":        dir("../"),
		"an absolute link":           link("l", "/etc/passwd"),
		"a link to the parent":       link("l", "../outside"),
		"a link out by a detour":     link("sub/l", "../a/../../outside"),
		"a device":                   {Name: "dev", Type: tar.TypeChar, Mode: 0o666},
		"a block device":             {Name: "dev", Type: tar.TypeBlock, Mode: 0o666},
		"a fifo":                     {Name: "fifo", Type: tar.TypeFifo, Mode: 0o666},
		"a hard link":                {Name: "hard", Type: tar.TypeLink, Link: "before"},
		"a hard link to the outside": {Name: "hard", Type: tar.TypeLink, Link: "/etc/passwd"},
	} {
		f.sub(what, func(f *fixture) {
			sb := f.open()
			err := f.tryCopyIn(sb, runtime.Workdir, runtime.CopyOptions{}, file("before", "b", 0o644), e, file("after", "a", 0o644))
			wantError[*runtime.PathError](f, what, err)
			got := f.copyOut(sb, runtime.Workdir, ".", runtime.CopyLimits{})
			for _, name := range []string{e.Name, "after"} {
				if _, ok := got.entries[name]; ok {
					f.Errorf("%s: %q is there all the same", what, name)
				}
			}
			f.run(sb) // the sandbox is as good as before
		})
	}
}

// testCopyInFollowsNoLink copies over symlinks that a program planted. Whether they
// are replaced or refused is the runtime's choice; what they point at is not touched.
func testCopyInFollowsNoLink(f *fixture) {
	sb := f.open()
	outside := sb.Path(runtime.Artifacts)
	f.copyIn(sb, runtime.Artifacts, runtime.CopyOptions{Fresh: true}, file("keep", "precious", 0o644), dir("d"))
	f.run(
		sb, Symlink(outside, "dir"), Symlink(outside+"/keep", "file"), Symlink(outside+"/new", "dangling"),
		Mkdir("sub"), Symlink(outside, "sub/dir"),
	)
	for _, e := range []entry{
		file("dir/x", "evil", 0o644), file("dir/d/x", "evil", 0o644), file("file", "evil", 0o644), file("dangling", "evil", 0o644),
		file("sub/dir/keep", "evil", 0o644), dir("dir/made"),
	} {
		if err := f.tryCopyIn(sb, runtime.Workdir, runtime.CopyOptions{}, e); err != nil {
			wantError[*runtime.PathError](f, "an entry through a planted link", err)
		}
	}
	if err := f.tryCopyIn(sb, runtime.Workdir, runtime.CopyOptions{Under: "sub/dir"}, file("keep", "evil", 0o644)); err != nil {
		wantError[*runtime.PathError](f, "Under through a planted link", err)
	}
	// A stream may not bring the link itself along either.
	err := f.tryCopyIn(sb, runtime.Workdir, runtime.CopyOptions{}, link("brought", outside), file("brought/x", "evil", 0o644))
	wantError[*runtime.PathError](f, "a stream that brings its own way out", err)

	want := map[string]entry{"keep": file("keep", "precious", 0), "d": {Name: "d", Type: tar.TypeDir}}
	if diff := cmp.Diff(want, f.copyOut(sb, runtime.Artifacts, ".", runtime.CopyLimits{}).entries); diff != "" {
		f.Errorf("what planted links point at was touched (-want +got):\n%s", diff)
	}
}

func testCopyInLimits(f *fixture) {
	for what, limits := range map[string]runtime.CopyLimits{
		"bytes": {Bytes: 25}, "bytes of a file": {FileBytes: 9}, "entries": {Entries: 2},
	} {
		f.sub(what, func(f *fixture) {
			sb := f.open()
			err := f.tryCopyIn(
				sb, runtime.Workdir, runtime.CopyOptions{Limits: limits},
				file("a", "0123456789", 0o644), file("b", "0123456789", 0o644), file("c", "0123456789", 0o644),
			)
			if !errors.Is(err, runtime.ErrTooLarge) {
				f.Errorf("past the limit of %s: error %v, want ErrTooLarge", what, err)
			}
			f.run(sb)
		})
	}
	sb := f.open()
	f.copyIn(
		sb, runtime.Workdir, runtime.CopyOptions{Limits: runtime.CopyLimits{Bytes: 20, FileBytes: 10, Entries: 2}},
		file("a", "0123456789", 0o644), file("b", "0123456789", 0o644),
	)
}

func testCopyInBadStream(f *fixture) {
	sb := f.open()
	whole, err := io.ReadAll(tarOf(file("x", strings.Repeat("x", 4096), 0o644)))
	if err != nil {
		f.Fatal(err)
	}
	broken := errors.New("the network went away")
	for what, r := range map[string]io.Reader{
		"no tar":         strings.NewReader(strings.Repeat("this is no tar stream", 100)),
		"a torn stream":  bytes.NewReader(whole[:2000]),
		"a failing read": io.MultiReader(bytes.NewReader(whole[:2000]), iotest.ErrReader(broken)),
	} {
		ctx, cancel := f.patience()
		err := sb.CopyIn(ctx, runtime.Workdir, r, runtime.CopyOptions{})
		cancel()
		if err == nil {
			f.Errorf("%s: no error", what)
		}
		if what == "a failing read" && !errors.Is(err, broken) {
			f.Errorf("%s: error %v, want the reader's %q", what, err, broken)
		}
	}
	f.run(sb)
}
