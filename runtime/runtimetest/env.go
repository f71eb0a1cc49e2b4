// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"maps"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

func testEnvironment(f *fixture) {
	sb := f.open(func(s *runtime.Spec) {
		maps.Copy(s.Env, map[string]string{"FROM_SPEC": "spec", "BOTH": "spec", "EMPTY": ""})
	})
	odd := " spaces 'and' \"quotes\" $HOME $(id) = ü\nsecond line"
	show := func(name string) string {
		r := f.exec(sb, runtime.Command{
			Argv: f.h.Programs.Program(Echo(name)),
			Env:  map[string]string{"FROM_COMMAND": "command", "BOTH": "command", "ODD": odd},
		})
		if r.err != nil || !r.exit.OK() {
			f.Fatalf("echo of %s: exit %+v, error %v", name, r.exit, r.err)
		}
		return strings.TrimSuffix(r.stdout, "\n")
	}
	for name, want := range map[string]string{
		"FROM_SPEC": "spec", "FROM_COMMAND": "command", "BOTH": "command", "EMPTY": "", "ODD": odd, markVar: f.mark,
	} {
		if got := show(name); got != want {
			f.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if got := f.run(sb, Echo("FROM_COMMAND")); got != "\n" {
		f.Errorf("the next command has the environment of the one before: %q", got)
	}
	if got := f.run(sb, Echo("PATH")); got == "\n" {
		f.Error("PATH is empty")
	}
}

// usual are variables that a runtime, or the shell inside, may set by itself.
var usual = []string{
	"PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ",
	"TERM", "HOSTNAME",
}

func testNothingOfTheHost(f *fixture) {
	const planted = "planted-by-the-suite"
	for _, name := range []string{
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "SOME_API_KEY", "some_api_key", "GH_TOKEN", "MY_SECRET", "DB_PASSWORD",
		"NATS_URL", "NATS_CREDS", "TIDEMILL_S3_SECRET", "SSH_AUTH_SOCK", "DOCKER_HOST", "KUBECONFIG", "XDG_RUNTIME_DIR",
		"HARMLESS", "LD_PRELOAD_OF_OURS", "PYTHONPATH", "GOFLAGS_OF_OURS",
	} {
		f.Setenv(name, planted)
	}
	// Some runtimes look at the environment once, when they are made.
	_, env := f.worker()
	sb := f.openIn(env)
	allowed := append([]string{markVar}, append(usual, f.h.Env...)...)
	for name := range f.h.Spec.Env {
		allowed = append(allowed, name)
	}
	for line := range strings.Lines(f.run(sb, Env())) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !matches(allowed, name) {
			f.Errorf("%s is in the environment and nobody gave it", name)
		}
		if strings.Contains(value, planted) {
			f.Errorf("the worker's %s arrived inside", name)
		}
	}
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if prefix, open := strings.CutSuffix(p, "*"); name == p || open && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
