// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

func testArgvVerbatim(f *fixture) {
	sb := f.open()
	args := []string{
		"plain", "two words", "", `"double"`, `it's`, "line\nbreak", "$HOME", "$(id)", "`id`", "*", "~", `back\slash`,
		"-n", "--", "; exit 3", "| cat", "ümlaut", "\t", "%s", "!x", "{a,b}",
	}
	const bytes = "\xff\xfe" // no text
	if f.h.TextOnly {
		r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Args(bytes)})
		wantError[*runtime.StartError](f, "an argument that is no text", r.err)
	} else {
		args = append(args, bytes)
	}
	r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Args(args...)})
	if r.err != nil || !r.exit.OK() {
		f.Fatalf("exit %+v, error %v, stderr %q", r.exit, r.err, r.stderr)
	}
	if diff := cmp.Diff(args, strings.Split(strings.TrimSuffix(r.stdout, "\x00"), "\x00")); diff != "" {
		f.Errorf("arguments changed on the way (-given +got):\n%s", diff)
	}
}

func testExitCodes(f *fixture) {
	sb := f.open()
	for _, code := range []int{0, 1, 7, 125, 126, 127, 255} {
		r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Exit(code))})
		if r.err != nil {
			f.Errorf("exit %d: error %v; a program that fails is a result", code, r.err)
			continue
		}
		if diff := cmp.Diff(runtime.Exit{Code: code}, r.exit); diff != "" {
			f.Errorf("exit %d (-want +got):\n%s", code, diff)
		}
		if r.exit.OK() != (code == 0) {
			f.Errorf("exit %d: OK() = %v", code, r.exit.OK())
		}
	}
}

func testSignalDeaths(f *fixture) {
	sb := f.open()
	for signal, name := range map[int]string{9: "SIGKILL", 15: "SIGTERM"} {
		r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Die(signal))})
		if r.err != nil {
			f.Errorf("signal %d: error %v; a program that dies is a result", signal, r.err)
			continue
		}
		want := runtime.Exit{Code: 128 + signal, Signal: name}
		if f.h.NoSignalNames {
			want.Signal = r.exit.Signal
		}
		if diff := cmp.Diff(want, r.exit); diff != "" {
			f.Errorf("signal %d (-want +got):\n%s", signal, diff)
		}
	}
}

func testStartErrors(f *fixture) {
	sb := f.open()
	f.copyIn(sb, runtime.Workdir, runtime.CopyOptions{}, file("not-executable", "text", 0o644))
	commands := map[string]runtime.Command{
		"no such program":         {Argv: []string{"no-such-program-of-the-suite", "x"}},
		"no such path":            {Argv: []string{"/no/such/program"}},
		"a file without x bit":    {Argv: []string{sb.Path(runtime.Workdir) + "/not-executable"}},
		"no argv":                 {},
		"an empty program's name": {Argv: []string{""}},
		"no such directory":       {Argv: f.h.Programs.Program(), Dir: "no/such/dir"},
		"a directory that's none": {Argv: f.h.Programs.Program(), Dir: "not-executable"},
	}
	for what, cmd := range commands {
		r := f.exec(sb, cmd)
		if r.err == nil {
			f.Errorf("%s: exit %+v and no error, want a StartError", what, r.exit)
			continue
		}
		wantError[*runtime.StartError](f, what, r.err)
	}
	f.run(sb) // and none of that harmed the sandbox
}

func testDirectory(f *fixture) {
	sb := f.open()
	f.run(sb, Mkdir("sub/dir"))
	work := strings.TrimSuffix(f.run(sb, Pwd()), "\n")
	for dir, want := range map[string]string{
		"": work, ".": work, "sub": work + "/sub", "sub/dir": work + "/sub/dir",
		sb.Path(runtime.Workdir) + "/sub": work + "/sub",
	} {
		r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Pwd()), Dir: dir})
		if r.err != nil || r.stdout != want+"\n" {
			f.Errorf("Dir %q: in %q, error %v; want %q", dir, r.stdout, r.err, want)
		}
	}
}

func testSideBySide(f *fixture) {
	sb := f.open()
	long := f.start(sb, runtime.Command{Argv: f.h.Programs.Program(Out("ready\n"), Hold())})
	long.awaitLine("ready")

	for i := range 3 {
		text := fmt.Sprint("number ", i)
		if got := f.run(sb, Out(text)); got != text {
			f.Errorf("beside a running command: %q, want %q", got, text)
		}
	}
	if r, ended := long.poll(); ended {
		f.Fatalf("the first command ended meanwhile: %+v", r)
	}
	long.cancel(errEnough)
	long.wait()
}
