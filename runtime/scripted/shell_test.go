// SPDX-License-Identifier: Apache-2.0

package scripted_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/scripted"
)

func TestScriptsOfShells(t *testing.T) {
	sb := open(t, scripted.New(scripted.Config{}), spec(), "{}")
	copyIn(t, sb, runtime.Tests, "test.sh", "#!/bin/bash\n# a comment\n\nprint one\n  print two\nexit 3\n")
	for name, c := range map[string]struct {
		argv []string
		out  string
		code int
		fail bool // it can't be started
	}{
		"a file":                  {argv: []string{"bash", "/tests/test.sh"}, out: "one\ntwo\n", code: 3},
		"a file, by its place":    {argv: []string{"/bin/sh", "tests/test.sh"}, out: "one\ntwo\n", code: 3},
		"a strict one":            {argv: []string{"/usr/bin/env", "bash", "-e", "/tests/test.sh"}, out: "one\ntwo\n", code: 3},
		"a text":                  {argv: []string{"bash", "-c", "print three\n# no\nprint four"}, out: "three\nfour\n"},
		"an array":                {argv: []string{"sh", "-c", `["print a", "print b"]`}, out: "a\nb\n"},
		"no such file":            {argv: []string{"bash", "/tests/none.sh"}, fail: true},
		"nothing":                 {argv: []string{"bash"}, fail: true},
		"more than a script":      {argv: []string{"bash", "/tests/test.sh", "argument"}, fail: true},
		"what is no instruction":  {argv: []string{"bash", "-c", "echo hello"}, fail: true},
		"instructions as before":  {argv: []string{"print five", "env"}, out: "five\n", code: -1},
		"an instruction of shell": {argv: []string{"print bash"}, out: "bash\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			exit, err := sb.Exec(t.Context(), runtime.Command{Argv: c.argv, Stdout: &out})
			if _, start := errors.AsType[*runtime.StartError](err); start != c.fail || err != nil && !start {
				t.Fatalf("error %v; want one of starting: %t", err, c.fail)
			}
			if c.code >= 0 && exit.Code != c.code || !bytes.HasPrefix(out.Bytes(), []byte(c.out)) {
				t.Errorf("exit %+v, output %q; want %d, %q", exit, out.String(), c.code, c.out)
			}
		})
	}
}

func TestDescription(t *testing.T) {
	s := spec()
	s.Image = runtime.Image{Ref: "debian:12"}
	describe := func(s runtime.Spec) runtime.Description {
		return open(t, scripted.New(scripted.Config{}), s, "{}").(runtime.Described).Describe()
	}
	got := describe(s)
	if len(got.Images) != 1 || got.Images[0].Digest != "debian:12@"+got.Images[0].ID || got.Images[0].Origin != runtime.ImagePresent {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(got, describe(s)); diff != "" {
		t.Errorf("the same image is described otherwise (-first +second):\n%s", diff)
	}
	s.Image = runtime.Image{BuildContext: "/some/context"}
	if built := describe(s).Images[0]; built.Origin != runtime.ImageBuilt || built.Digest != "" || built.ID == got.Images[0].ID {
		t.Errorf("%+v", built)
	}
	s.Services, s.Runner = []runtime.Service{{Name: "runner"}, {Name: "db", Image: runtime.Image{Ref: "postgres:16"}}}, "runner"
	if all := describe(s).Images; len(all) != 2 || all[0].Service != "runner" || all[1].Service != "db" {
		t.Errorf("%+v", all)
	}
	if none := describe(spec()); len(none.Images) != 0 {
		t.Errorf("without an image: %+v", none)
	}
}

func TestWorkdirsThatCantBe(t *testing.T) {
	for _, workdir := range []string{"app", "./app", "/", "//", "/app/.."} {
		s := spec()
		s.Workdir = workdir
		if _, err := prepare(t, scripted.New(scripted.Config{})).Open(t.Context(), s); err == nil {
			t.Errorf("workdir %q was taken", workdir)
		}
	}
}
