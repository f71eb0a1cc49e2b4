// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"archive/tar"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

// below renames entries so that they are relative to a directory of the place.
func (c copied) below(dir string) map[string]entry {
	out := map[string]entry{}
	for name, e := range c.entries {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			e.Name = rest
			out[rest] = e
		} else if name != dir {
			out["not below "+dir+": "+name] = e
		}
	}
	return out
}

// names returns the sorted names of all that isn't a directory.
func (c copied) names() []string {
	var names []string
	for name, e := range c.entries {
		if e.Type != tar.TypeDir {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func testCopyOutNames(f *fixture) {
	sb := f.open()
	f.copyIn(
		sb, runtime.Artifacts, runtime.CopyOptions{},
		file("a", "1", 0o644), file("sub/b", "2", 0o644), file("sub/deep/c", "3", 0o644), file("subtle", "4", 0o644),
	)
	for path, want := range map[string][]string{
		".":        {"a", "sub/b", "sub/deep/c", "subtle"},
		"a":        {"a"},
		"sub":      {"sub/b", "sub/deep/c"},
		"./sub/":   {"sub/b", "sub/deep/c"},
		"sub/deep": {"sub/deep/c"},
		"sub/b":    {"sub/b"},
	} {
		if diff := cmp.Diff(want, f.copyOut(sb, runtime.Artifacts, path, runtime.CopyLimits{}).names()); diff != "" {
			f.Errorf("CopyOut of %q; names are relative to the place (-want +got):\n%s", path, diff)
		}
	}
}

func testCopyOutRefuses(f *fixture) {
	sb := f.open()
	f.copyIn(sb, runtime.Artifacts, runtime.CopyOptions{}, file("a", "1", 0o644))
	for _, path := range []string{"missing", "sub/missing", "a/below-a-file"} {
		if _, err := f.tryCopyOut(sb, runtime.Artifacts, path, runtime.CopyLimits{}); !errors.Is(err, runtime.ErrNotExist) {
			f.Errorf("CopyOut of %q: error %v, want ErrNotExist", path, err)
		}
	}
	// A place that nothing was copied into doesn't exist.
	for _, path := range []string{".", "x"} {
		if _, err := f.tryCopyOut(sb, runtime.Solution, path, runtime.CopyLimits{}); !errors.Is(err, runtime.ErrNotExist) {
			f.Errorf("CopyOut of %q from a place that isn't there: error %v, want ErrNotExist", path, err)
		}
	}
	for _, path := range []string{"..", "../workdir", "/etc/passwd", "a/../../x", "sub/../../../x"} {
		_, err := f.tryCopyOut(sb, runtime.Artifacts, path, runtime.CopyLimits{})
		wantError[*runtime.PathError](f, "CopyOut of "+path, err)
	}
}

func testCopyOutFollowsNoLink(f *fixture) {
	sb := f.open()
	f.fresh(sb, runtime.Artifacts)
	f.copyIn(sb, runtime.Workdir, runtime.CopyOptions{}, file("secret/file", "not for you", 0o644))
	secret, place := sb.Path(runtime.Workdir)+"/secret", sb.Path(runtime.Artifacts)
	f.run(
		sb, Symlink(secret, place+"/dir"), Symlink(secret+"/file", place+"/file"), Symlink("nowhere", place+"/dangling"),
		Symlink("/etc/passwd", place+"/passwd"), Symlink(".", place+"/loop"),
	)
	want := map[string]entry{
		"dir": link("dir", secret), "file": link("file", secret+"/file"), "dangling": link("dangling", "nowhere"),
		"passwd": link("passwd", "/etc/passwd"), "loop": link("loop", "."),
	}
	if diff := cmp.Diff(want, f.copyOut(sb, runtime.Artifacts, ".", runtime.CopyLimits{}).entries); diff != "" {
		f.Errorf("symlinks are passed on as they are (-want +got):\n%s", diff)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		got := f.copyOut(sb, runtime.Artifacts, name, runtime.CopyLimits{})
		if diff := cmp.Diff(map[string]entry{name: want[name]}, got.entries); diff != "" {
			f.Errorf("CopyOut of the symlink %q itself (-want +got):\n%s", name, diff)
		}
	}
	for _, path := range []string{"dir/file", "loop/file", "dir/."} {
		got, err := f.tryCopyOut(sb, runtime.Artifacts, path, runtime.CopyLimits{})
		f.notFollowed("CopyOut of "+path, got, err)
	}

	// The place itself may be a link.
	r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Rename(place, "moved"), Symlink(secret, place))})
	if r.err != nil || !r.exit.OK() {
		return // can't be planted here
	}
	for _, path := range []string{".", "file"} {
		got, err := f.tryCopyOut(sb, runtime.Artifacts, path, runtime.CopyLimits{})
		f.notFollowed(fmt.Sprintf("CopyOut of %q from a place that is a symlink", path), got, err)
	}
}

func testCopyOutSpecials(f *fixture) {
	sb := f.open()
	f.run(sb, Mkdir("dir"), Fifo("dir/fifo"), Write("dir/file", "data"))
	specials := []string{"fifo"}
	if f.h.Special != nil {
		specials = append(specials, f.h.Special(f.T, sb, "dir")...)
	}
	got := f.copyOut(sb, runtime.Workdir, "dir", runtime.CopyLimits{})
	if diff := cmp.Diff([]string{"dir/file"}, got.names()); diff != "" {
		f.Errorf("beside what is no file (-want +got):\n%s", diff)
	}
	if got.total != len(specials) {
		f.Errorf("%d entries left out, want %d", got.total, len(specials))
	}
	for _, name := range specials {
		if got.skipped["dir/"+name].Reason == "" {
			f.Errorf("dir/%s is not among what was left out with its reason: %v", name, got.skipped)
		}
	}
}

func testCopyOutLimits(f *fixture) {
	sb := f.open()
	f.copyIn(
		sb, runtime.Artifacts, runtime.CopyOptions{},
		file("a", "0123456789", 0o644), file("b", strings.Repeat("x", 2000), 0o644), file("c", "0123456789", 0o644),
		link("d", "a"), file("e", "", 0o644),
	)
	const all = 5

	got := f.copyOut(sb, runtime.Artifacts, ".", runtime.CopyLimits{FileBytes: 1999})
	if diff := cmp.Diff([]string{"a", "c", "d", "e"}, got.names()); diff != "" {
		f.Errorf("with a limit for a file (-want +got):\n%s", diff)
	}
	if s := got.skipped["b"]; got.total != 1 || s.Bytes != 2000 || s.Reason == "" {
		f.Errorf("left out: %d, %+v; want b with its 2000 bytes and a reason", got.total, got.skipped)
	}

	for what, limits := range map[string]runtime.CopyLimits{
		"bytes": {Bytes: 15}, "entries": {Entries: 2}, "both": {Bytes: 15, Entries: 3},
	} {
		got := f.copyOut(sb, runtime.Artifacts, ".", limits)
		size := 0
		for _, e := range got.entries {
			size += len(e.Data)
		}
		if limits.Bytes > 0 && int64(size) > limits.Bytes || limits.Entries > 0 && len(got.entries) > limits.Entries {
			f.Errorf("limit of %s: got %d bytes in %d entries, want at most %+v", what, size, len(got.entries), limits)
		}
		if len(got.entries) == 0 || len(got.entries)+got.total != all || len(got.skipped) != got.total {
			f.Errorf("limit of %s: %d sent and %d left out (%d named), want %d in all", what, len(got.entries), got.total, len(got.skipped), all)
		}
	}

	got = f.copyOut(sb, runtime.Artifacts, ".", runtime.CopyLimits{Bytes: 2020, FileBytes: 2000, Entries: 10})
	if len(got.entries) != all || got.total != 0 {
		f.Errorf("within its limits: %d sent, %d left out, want all %d", len(got.entries), got.total, all)
	}

	// A limit that stops the copy of one file leaves it out; nothing else changes.
	got = f.copyOut(sb, runtime.Artifacts, "b", runtime.CopyLimits{FileBytes: 10})
	if len(got.entries) != 0 || got.total != 1 {
		f.Errorf("one file over the limit: %d sent, %d left out", len(got.entries), got.total)
	}
}
