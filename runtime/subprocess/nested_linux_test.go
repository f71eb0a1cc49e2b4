// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/runtimetest"
	"github.com/tidemill/tidemill/runtime/subprocess/internal/nest"
)

func TestConformanceNested(t *testing.T) {
	nestedRuntime(t, Config{})
	conformance(t, Required)
}

// nestedRuntime is for tests of what only nests do. They are skipped where the kernel has
// none to offer, with the sentence that Properties has as well.
func nestedRuntime(t testing.TB, cfg Config) *Runtime {
	t.Helper()
	cfg.Isolation = Auto
	rt := newRuntime(t, cfg)
	if err := rt.probed().Nests; err != nil {
		t.Skipf("this machine has no namespaces to offer: %v", err)
	}
	return rt
}

func needsLimit(t testing.TB, rt *Runtime, key string) {
	t.Helper()
	if !slices.Contains(rt.Properties().Limits, key) {
		t.Skipf("no limit of %s on this machine", key)
	}
}

// openWith opens a sandbox of a run with options.
func openWith(t testing.TB, rt *Runtime, options map[string]any, edit func(*runtime.Spec)) *Sandbox {
	t.Helper()
	spec := testSpec(runtime.NewName())
	spec.Network[runtime.Agent] = runtime.Network{Policy: runtime.NoInternet}
	if edit != nil {
		edit(&spec)
	}
	env, err := rt.Prepare(t.Context(), runtime.RunSpec{
		Network: slices.Collect(maps.Values(spec.Network)), Resources: spec.Resources, Options: options,
	})
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	sb, err := env.Open(t.Context(), spec)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { closeSandbox(t, sb.(*Sandbox)) })
	return sb.(*Sandbox)
}

// try runs a shell script and returns how it ended.
func try(t testing.TB, sb *Sandbox, script string) (runtime.Exit, string) {
	t.Helper()
	var out bytes.Buffer
	exit, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out, Timeout: patience})
	if err != nil {
		t.Fatalf("sh -c %q: %v", script, err)
	}
	return exit, out.String()
}

func TestPropertiesFollowTheProbe(t *testing.T) {
	rt := nestedRuntime(t, Config{})
	p := rt.Properties()
	if !p.OwnProcesses || !p.HidesHost || !slices.Contains(p.Policies, runtime.NoInternet) || slices.Contains(p.Policies, runtime.LimitedInternet) {
		t.Errorf("properties %+v", p)
	}
	for _, limit := range []string{"files", "disk", "shm"} {
		if !slices.Contains(p.Limits, limit) {
			t.Errorf("no limit of %s in %v", limit, p.Limits)
		}
	}
	// What the machine lacks is refused, and said.
	report := rt.probed()
	broken := &Runtime{cfg: rt.cfg, probed: func() nest.Report { return report }}
	report.Offline = errors.New("the moon is full")
	report.Memory = errors.New("the moon is new")
	p = broken.Properties()
	if slices.Contains(p.Policies, runtime.NoInternet) || slices.Contains(p.Limits, "memory") {
		t.Errorf("properties %+v of a machine that can't", p)
	}
	for _, why := range []string{"moon is full", "moon is new"} {
		if !strings.Contains(strings.Join(p.Unprotected, "\n"), why) {
			t.Errorf("unprotected %q doesn't say %q", p.Unprotected, why)
		}
	}
	for want, spec := range map[string]runtime.RunSpec{
		"network_policy no_internet; it supports full_internet (the moon is full)": {Network: []runtime.Network{{Policy: runtime.NoInternet}}},
		"resources.memory 5": {Resources: runtime.Resources{Memory: 5}},
	} {
		_, err := broken.Prepare(t.Context(), spec)
		var u *runtime.UnsupportedError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want an UnsupportedError with %q", err, want)
		}
	}
	report.Nests = errors.New("no moon at all")
	p = broken.Properties()
	if p.OwnProcesses || p.HidesHost || len(p.Limits) > 0 || !strings.Contains(strings.Join(p.Unprotected, "\n"), "no moon at all") {
		t.Errorf("properties %+v without namespaces", p)
	}
}

// TestProgramWithoutTheHook is a mistake of a program's author, who should learn of it.
func TestProgramWithoutTheHook(t *testing.T) {
	rt := &Runtime{cfg: Config{}.WithDefaults(), probed: func() nest.Report { return nest.Report{Nests: nest.ErrNoHook} }}
	_, err := rt.Prepare(t.Context(), runtime.RunSpec{})
	if err == nil || !strings.Contains(err.Error(), "subprocess.Main") {
		t.Errorf("error %v, want one that says what to call", err)
	}
	if _, err := rt.Prepare(t.Context(), runtime.RunSpec{Options: map[string]any{"isolation": "none"}}); err != nil {
		t.Errorf("isolation none: %v", err)
	}
	if p := rt.Properties(); p.OwnProcesses || len(p.Policies) != 1 {
		t.Errorf("properties %+v", p)
	}
}

func TestRunOptions(t *testing.T) {
	nested := nestedRuntime(t, Config{})
	required := newRuntime(t, Config{Isolation: Required})
	plain := newRuntime(t, Config{Isolation: None})
	no := []runtime.Network{{Policy: runtime.NoInternet}}
	for name, test := range map[string]struct {
		rt      *Runtime
		options map[string]any
		network []runtime.Network
		want    string // in the error; empty for none
	}{
		"auto":                         {rt: nested, options: map[string]any{"isolation": "auto"}, network: no},
		"nothing asked":                {rt: nested, network: no},
		"required":                     {rt: nested, options: map[string]any{"isolation": "required"}, network: no},
		"none, with a policy for it":   {rt: nested, options: map[string]any{"isolation": "none"}},
		"none can't cut off":           {rt: nested, options: map[string]any{"isolation": "none"}, network: no, want: "no_internet; it supports full_internet (isolation is none)"},
		"none where it is required":    {rt: required, options: map[string]any{"isolation": "none"}, want: "requires isolation"},
		"required where there is none": {rt: plain, options: map[string]any{"isolation": "required"}, want: "options.isolation required"},
		"limited":                      {rt: nested, network: []runtime.Network{{Policy: runtime.LimitedInternet, Allow: []string{"example.com"}}}, want: "limited_internet; it supports full_internet, no_internet"},
		"another word":                 {rt: nested, options: map[string]any{"isolation": "much"}, want: `isolation "much": want auto, none or required`},
		"another type":                 {rt: nested, options: map[string]any{"isolation": 7}, want: "want auto, none or required"},
		"visible":                      {rt: nested, options: map[string]any{"visible": []any{"/etc"}}},
		"visible, relative":            {rt: nested, options: map[string]any{"visible": []any{"etc"}}, want: "absolute"},
		"visible, no list":             {rt: nested, options: map[string]any{"visible": "/etc"}, want: "list of absolute paths"},
		"an option that there isn't":   {rt: nested, options: map[string]any{"colour": "blue"}, want: "options.colour blue; it supports isolation, visible"},
		"nothing asked, no namespaces": {rt: plain},
		"visible where everything is":  {rt: plain, options: map[string]any{"visible": []string{"/etc"}}},
		"a policy, without namespaces": {rt: plain, network: no, want: "no_internet"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.rt.Prepare(t.Context(), runtime.RunSpec{Options: test.options, Network: test.network})
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// TestSandboxIsAlone is what a trial may count on.
func TestSandboxIsAlone(t *testing.T) {
	root := filepath.Join(t.TempDir(), "data", "sandboxes")
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(root, "..", "commits"), "secret")
	rt := nestedRuntime(t, Config{Root: root, Hide: []string{filepath.Dir(root)}})
	sb, other := openWith(t, rt, nil, nil), openWith(t, rt, nil, nil)
	sh(t, other, "echo theirs >file")
	sh(t, sb, "echo mine >file; [ ! -e "+other.Path(runtime.Workdir)+" ]; [ ! -e "+filepath.Dir(root)+"/commits ]")
	for _, path := range []string{sb.sidePath + "/" + recordName} {
		if exit, _ := try(t, sb, "grep -q nonce "+path+" || echo x >"+path+" || rm "+path+" || mv "+path+" "+path+"2"); exit.OK() {
			t.Errorf("%s can be read or written inside", path)
		}
	}
	if exit, out := try(t, sb, "ls /proc/[0-9]*/cmdline | wc -l | grep -qx '[1-5]'"); !exit.OK() {
		t.Errorf("foreign processes can be seen: %s", out)
	}
	if got := mustRead(t, filepath.Join(sb.Path(runtime.Workdir), "file")); got != "mine\n" {
		t.Errorf("the worker reads %q", got)
	}
}

func TestVisible(t *testing.T) {
	home := t.TempDir()
	mustWrite(t, filepath.Join(home, "tool"), "#!/bin/sh\necho works\n")
	if err := os.Chmod(filepath.Join(home, "tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	rt := nestedRuntime(t, Config{Hide: []string{home}, Path: home + "/nowhere:/usr/bin:/bin"})
	if exit, _ := try(t, openWith(t, rt, nil, nil), home+"/tool"); exit.OK() {
		t.Error("a hidden directory can be seen")
	}
	if got := sh(t, openWith(t, rt, map[string]any{"visible": []any{home}}, nil), home+"/tool"); got != "works\n" {
		t.Errorf("got %q", got)
	}
	rt = nestedRuntime(t, Config{Hide: []string{home}, Path: home + ":/usr/bin:/bin"})
	if got := sh(t, openWith(t, rt, nil, nil), "tool"); got != "works\n" {
		t.Errorf("a program in PATH: got %q", got)
	}
}

func TestExhausted(t *testing.T) {
	rt := nestedRuntime(t, Config{})
	for want, test := range map[string]struct {
		resources runtime.Resources
		script    string
	}{
		runtime.OutOfMemory: {runtime.Resources{Memory: 32 << 20}, `x=$(head -c 200000000 /dev/zero | tr '\0' x); exit 1`},
		runtime.OutOfDisk:   {runtime.Resources{Disk: 1 << 20}, `cat /dev/zero >a 2>/dev/null; cat /dev/zero >b`},
		runtime.OutOfPids:   {runtime.Resources{Pids: 20}, `f() { f | f & f; }; (f) 2>/dev/null; sleep 0.1; exit 1`},
	} {
		t.Run(want, func(t *testing.T) {
			needsLimit(t, rt, want)
			sb := openWith(t, rt, nil, func(s *runtime.Spec) { s.Resources = test.resources })
			if exit, out := try(t, sb, test.script); exit.OK() || exit.Exhausted != want {
				t.Errorf("exit %+v, want it exhausted of %s: %s", exit, want, out)
			}
			if err := sb.EndProcesses(t.Context()); err != nil {
				t.Fatal(err)
			}
			sh(t, sb, "rm -f a b")
			if exit, _ := try(t, sb, "exit 3"); exit != (runtime.Exit{Code: 3}) {
				t.Errorf("afterwards: %+v", exit)
			}
		})
	}
}

// TestNoRoomToStart has the sandbox's own processes take every place.
func TestNoRoomToStart(t *testing.T) {
	rt := nestedRuntime(t, Config{})
	needsLimit(t, rt, "pids")
	sb := openWith(t, rt, nil, func(s *runtime.Spec) { s.Resources.Pids = 5 })
	var running sync.WaitGroup
	for range 5 {
		r, w := io.Pipe()
		running.Go(func() {
			_, err := sb.Exec(context.Background(), runtime.Command{Argv: []string{"sh", "-c", "echo ready; exec sleep 1000"}, Stdout: w})
			w.CloseWithError(err)
		})
		if line, err := bufio.NewReader(r).ReadString('\n'); err != nil {
			t.Fatalf("it says %q: %v", line, err)
		}
	}
	exit, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"true"}, Timeout: patience})
	if err != nil || exit.Exhausted != runtime.OutOfPids || exit.OK() {
		t.Errorf("exit %+v, error %v, want it exhausted of pids", exit, err)
	}
	if err := sb.EndProcesses(t.Context()); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	sh(t, sb, ":")
}

func TestFilesLimit(t *testing.T) {
	sb := openWith(t, nestedRuntime(t, Config{}), nil, func(s *runtime.Spec) { s.Resources.Files = 33 })
	if got := sh(t, sb, "ulimit -Hn"); got != "33\n" {
		t.Errorf("ulimit -Hn prints %q", got)
	}
}

// TestWorkerKilledNested: with a nest nothing is left to be found.
func TestWorkerKilledNested(t *testing.T) {
	root := t.TempDir()
	rt := nestedRuntime(t, Config{Root: root})
	spec := testSpec("swept")
	if slices.Contains(rt.Properties().Limits, "memory") && slices.Contains(rt.Properties().Limits, "pids") {
		spec.Resources = runtime.Resources{Memory: 1 << 30, Pids: 100}
	}
	spec.Env = map[string]string{"NESTED_TEST": "killed-" + filepath.Base(root)}
	crashIn(t, Required, root, spec)
	found, err := rt.List(t.Context())
	if err != nil || len(found) != 1 || found[0].Live {
		t.Fatalf("List: %+v, %v", found, err)
	}
	side, err := openDir(filepath.Join(root, "swept"+sideSuffix))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := readRecord(side, "swept")
	if err := errors.Join(err, side.Close()); err != nil {
		t.Fatal(err)
	}
	var groups []string
	for _, tr := range rec.traces {
		groups = append(groups, tr.Groups...)
	}
	if err := rt.Destroy(t.Context(), found[0].Handle); err != nil {
		t.Fatal(err)
	}
	if left := slices.Concat(entriesOf(t, root), runtimetest.HostProcesses(spec.Env["NESTED_TEST"])); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if spec.Resources.Memory > 0 && len(groups) == 0 {
		t.Error("nobody wrote down which control groups there are")
	}
	for _, dir := range groups {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("left behind: %s", dir)
		}
	}
}

// TestWardenDies: sandboxes are lost, and the next ones are as good as ever.
func TestWardenDies(t *testing.T) {
	rt := nestedRuntime(t, Config{})
	sb := openWith(t, rt, nil, nil)
	init, err := sb.nest.Init()
	if err != nil {
		t.Fatal(err)
	}
	stat := strings.Fields(mustRead(t, fmt.Sprintf("/proc/%d/stat", init.PID)))
	var warden int
	if _, err := fmt.Sscan(stat[3], &warden); err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(warden)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-rt.wardens.now.Lost()
	if _, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"true"}}); !errors.Is(err, runtime.ErrLost) {
		t.Errorf("Exec: %v, want ErrLost", err)
	}
	if err := sb.Alive(t.Context()); !errors.Is(err, runtime.ErrLost) {
		t.Errorf("Alive: %v, want ErrLost", err)
	}
	if err := sb.EndProcesses(t.Context()); !errors.Is(err, runtime.ErrLost) {
		t.Errorf("EndProcesses: %v, want ErrLost", err)
	}
	sh(t, openWith(t, rt, nil, nil), ":")
}
