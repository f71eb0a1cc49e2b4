// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"archive/tar"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

func testFresh(f *fixture) {
	sb := f.open()
	for _, p := range runtime.Places {
		if p == runtime.Workdir || p == runtime.Logs {
			continue
		}
		f.copyIn(sb, p, runtime.CopyOptions{}, file("old", "o", 0o644), file("sub/old", "o", 0o644), link("l", "old"))
		f.fresh(sb, p)
		if got := f.copyOut(sb, p, ".", runtime.CopyLimits{}); len(got.entries) != 0 {
			f.Errorf("%s is fresh and has %v", p, got.entries)
		}
		f.copyIn(sb, p, runtime.CopyOptions{Fresh: true}, file("new", "n", 0o644))
		f.copyIn(sb, p, runtime.CopyOptions{Fresh: true}, file("newer", "n", 0o644))
		want := map[string]entry{"newer": file("newer", "n", 0)}
		if diff := cmp.Diff(want, f.copyOut(sb, p, ".", runtime.CopyLimits{}).entries); diff != "" {
			f.Errorf("%s after a fresh copy (-want +got):\n%s", p, diff)
		}
	}

	f.run(sb, Write("work", "done"))
	ctx, cancel := f.patience()
	defer cancel()
	if err := sb.CopyIn(ctx, runtime.Workdir, nil, runtime.CopyOptions{Fresh: true}); err == nil {
		f.Error("a fresh workdir: no error")
	}
	if got := f.run(sb, Read("work")); got != "done" {
		f.Errorf("after the refusal the workdir has %q", got)
	}
}

// testFreshOverLinks lets a program forge a place before it is made fresh: by a link
// at the place, and by a link above it.
func testFreshOverLinks(f *fixture) {
	precious := map[string]entry{
		"verifier":      {Name: "verifier", Type: tar.TypeDir},
		"verifier/keep": file("verifier/keep", "precious", 0),
	}
	for what, plant := range map[string]func(sb runtime.Sandbox, target string) []Step{
		"a link at the place": func(sb runtime.Sandbox, target string) []Step {
			return []Step{Rename(sb.Path(runtime.Verdict), "moved"), Symlink(target+"/verifier", sb.Path(runtime.Verdict))}
		},
		"a link above the place": func(sb runtime.Sandbox, target string) []Step {
			return []Step{Rename(sb.Path(runtime.Logs), "moved"), Symlink(target, sb.Path(runtime.Logs))}
		},
		"a file at the place": func(sb runtime.Sandbox, _ string) []Step {
			return []Step{Rename(sb.Path(runtime.Verdict), "moved"), Write(sb.Path(runtime.Verdict), "a file")}
		},
	} {
		f.sub(what, func(f *fixture) {
			sb := f.open()
			f.copyIn(sb, runtime.Workdir, runtime.CopyOptions{}, file("victim/verifier/keep", "precious", 0o644))
			f.fresh(sb, runtime.Verdict)
			target := sb.Path(runtime.Workdir) + "/victim"
			r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(plant(sb, target)...)})
			if r.err != nil || !r.exit.OK() {
				f.Skipf("can't be planted here: exit %+v, error %v, stderr %q", r.exit, r.err, r.stderr)
			}
			if err := f.tryCopyIn(sb, runtime.Verdict, runtime.CopyOptions{Fresh: true}, file("reward.txt", "1", 0o644)); err != nil {
				wantError[*runtime.PathError](f, what, err)
			} else {
				want := map[string]entry{"reward.txt": file("reward.txt", "1", 0)}
				if diff := cmp.Diff(want, f.copyOut(sb, runtime.Verdict, ".", runtime.CopyLimits{}).entries); diff != "" {
					f.Errorf("the fresh place (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(precious, f.copyOut(sb, runtime.Workdir, "victim", runtime.CopyLimits{}).below("victim")); diff != "" {
				f.Errorf("what the link points at was touched (-want +got):\n%s", diff)
			}
		})
	}
}
