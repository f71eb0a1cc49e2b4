// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

func TestGlobRoots(t *testing.T) {
	for _, c := range []struct{ globs, want []string }{
		{nil, nil},
		{[]string{"out.txt"}, []string{"out.txt"}},
		{[]string{"*.txt", "deep/x"}, []string{"."}},
		{[]string{"out/*.txt", "out/more/[ab]", "out"}, []string{"out"}},
		{[]string{"a/*", "a-b/*", "a/b/*"}, []string{"a", "a-b"}},
		{[]string{"a/b*/c", "a/c?"}, []string{"a"}},
		{[]string{`data/\*lit`, "data/x"}, []string{"data"}},
		{[]string{"x", "x"}, []string{"x"}},
	} {
		if diff := cmp.Diff(c.want, globRoots(c.globs)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.globs, diff)
		}
	}
}

func TestExpandArgv(t *testing.T) {
	env := map[string]string{"TIDEMILL_WORKDIR": "/w", "TIDEMILL_X": "${TIDEMILL_WORKDIR}", "HOME": "/root"}
	for in, want := range map[string]string{
		"":                         "",
		"${TIDEMILL_WORKDIR}/x":    "/w/x",
		"${TIDEMILL_X}":            "${TIDEMILL_WORKDIR}", // once, not again
		"${TIDEMILL_NONE} ${HOME}": "${TIDEMILL_NONE} ${HOME}",
		"$TIDEMILL_WORKDIR":        "$TIDEMILL_WORKDIR",
		"${TIDEMILL_WORKDIR":       "${TIDEMILL_WORKDIR",
		"a${TIDEMILL_WORKDIR}b${TIDEMILL_WORKDIR}": "a/wb/w",
	} {
		if got := expandArgv([]string{in}, env)[0]; got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// A pattern that found nothing keeps nobody from grading again; a file that was left out
// does.
func TestFilesRegradableWithoutMatch(t *testing.T) {
	const list = `{"skipped":[{"path":"workdir/answer.txt","reason":"%s"}],"skipped_total":1}`
	if why := FilesRegradable(fmt.Appendf(nil, list, reasonNoMatch), nil); why != "" {
		t.Errorf("refused: %s", why)
	}
	if why := FilesRegradable(fmt.Appendf(nil, list, reasonNoRoom), nil); why == "" {
		t.Error("not refused")
	}
}

func TestSecretsFrom(t *testing.T) {
	t.Setenv("TRIAL_TEST_A", "one")
	t.Setenv("TRIAL_TEST_EMPTY", "")
	values, missing := SecretsFrom([]string{"TRIAL_TEST_A", "TRIAL_TEST_EMPTY", "TRIAL_TEST_NONE"})
	if diff := cmp.Diff(map[string]string{"TRIAL_TEST_A": "one"}, values); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"TRIAL_TEST_EMPTY", "TRIAL_TEST_NONE"}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestSpec(t *testing.T) {
	run := &manifest.RunRecord{RunID: "r1"}
	run.Run.NetworkPolicy, run.Run.LimitedInternetAllowlist = "limited_internet", []string{"example.com"}
	run.Run.Runtime.Image = "python:3.12-slim"
	run.Run.Runtime.Resources = manifest.Resources{CPUs: 2, GPUTypes: []string{"h100"}}
	a := newAttempt(Config{
		Run: run, Row: bundle.PlanRow{TaskID: "t/1", TrialIndex: 3, TrialID: "abc"}, Attempt: 2, StoreUUID: "s", Worker: "w",
		Task: &manifest.Task{
			Image: "debian:12", Users: map[string]string{"agent": "ann"}, Env: map[string]string{"K": "v"},
			Resources: manifest.Resources{CPUs: 1, Memory: 1 << 30, GPUs: 1, GPUTypes: []string{"a100"}},
			Steps:     make([]manifest.Step, 2),
		},
	})
	spec := a.spec()
	left := time.Until(spec.Labels.ExpiresAt)
	if least := 2*(DefaultAgentTimeout+DefaultGradeTimeout) + DefaultProvisionTimeout; left < least {
		t.Errorf("the sandbox expires in %s, the attempt may take %s", left, least)
	}
	spec.Labels.ExpiresAt = time.Time{}
	want := runtime.Spec{
		Name:         "abc",
		Labels:       runtime.Labels{Store: "s", Run: "r1", Task: "t/1", TrialIndex: 3, Trial: "abc", Attempt: 2, Worker: "w"},
		Image:        runtime.Image{Ref: "python:3.12-slim"},
		Users:        map[runtime.Phase]string{runtime.Agent: "ann"},
		Network:      map[runtime.Phase]runtime.Network{runtime.Agent: {Policy: runtime.LimitedInternet, Allow: []string{"example.com"}}},
		Resources:    runtime.Resources{CPUs: 2, Memory: 1 << 30, GPUs: 1, GPUTypes: []string{"h100"}},
		Env:          map[string]string{"K": "v"},
		ReadyTimeout: DefaultProvisionTimeout,
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	prepared := RunSpec(run.Run, "r1", "s", "w")
	if diff := cmp.Diff(runtime.RunSpec{
		Run: "r1", Store: "s", Worker: "w", Images: []runtime.Image{{Ref: "python:3.12-slim"}},
		Network: []runtime.Network{want.Network[runtime.Agent]}, Resources: runtime.Resources{CPUs: 2, GPUTypes: []string{"h100"}},
	}, prepared); diff != "" {
		t.Errorf("run spec (-want +got):\n%s", diff)
	}
}

func TestTail(t *testing.T) {
	for _, c := range []struct {
		log   string
		lines int
		want  string
		cut   bool
	}{
		{"", 2, "", false},
		{"a\nb\nc\n", 0, "a\nb\nc\n", false},
		{"a\nb\nc\n", 3, "a\nb\nc\n", false},
		{"a\nb\nc\n", 2, "b\nc\n", true},
		{"a\nb\nc", 2, "b\nc", true},
		{"\nb\n", 2, "\nb\n", false},
		{"\nb\n", 1, "b\n", true},
		{"a\n\n", 1, "\n", true},
	} {
		if got, cut := tail([]byte(c.log), c.lines); string(got) != c.want || cut != c.cut {
			t.Errorf("%d lines of %q: %q, %v; want %q, %v", c.lines, c.log, got, cut, c.want, c.cut)
		}
	}
}

func TestRates(t *testing.T) {
	rate := func(calls int64, r ...float64) *agentUsage {
		u := &agentUsage{ToolCalls: calls}
		if len(r) > 0 {
			u.ToolSuccessRate = &r[0]
		}
		return u
	}
	for _, c := range []struct {
		a, b *agentUsage
		want *float64
	}{
		{rate(1, 1), rate(3, 0), new(0.25)},
		{rate(2), rate(3, 0.5), new(0.5)},
		{rate(2, 0.5), rate(3), new(0.5)},
		{rate(0, 0), rate(3, 1), new(1.0)},
		{rate(2, 1), rate(0, 0), new(1.0)},
		{rate(2), rate(3), nil},
	} {
		if diff := cmp.Diff(c.want, meanRate(c.a, c.b)); diff != "" {
			t.Errorf("%+v and %+v (-want +got):\n%s", c.a, c.b, diff)
		}
	}
}

// A directory that can't be read is an error, not a shorter copy.
func TestTreeThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := writeTree(discard{}, dir); err != nil {
		t.Errorf("a dangling link is a link: %v", err)
	}
	if err := writeTree(discard{}, filepath.Join(dir, "none")); err == nil {
		t.Error("no error for a directory that isn't there")
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
