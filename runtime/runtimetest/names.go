// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

func testGivenName(f *fixture) {
	for _, name := range []string{"0123456789abcdef0123456789abcdef", "A.b_c-9", "x1", strings.Repeat("n", 100)} {
		sb := f.open(named(name))
		if sb.Name() != name {
			f.Errorf("Name() = %q, want the given %q", sb.Name(), name)
		}
		f.greppable(sb)
	}
}

func testGeneratedNames(f *fixture) {
	want := regexp.MustCompile(`^tm-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 3 {
		sb := f.open(named(""))
		if !want.MatchString(sb.Name()) {
			f.Errorf("generated name %q, want %s", sb.Name(), want)
		}
		if seen[sb.Name()] {
			f.Errorf("name %q was generated twice", sb.Name())
		}
		seen[sb.Name()] = true
		f.greppable(sb)
	}
}

// greppable checks that the resource is called what the sandbox is called.
func (f *fixture) greppable(sb runtime.Sandbox) {
	f.Helper()
	if sb.Handle().ID == "" || sb.Handle().Kind == "" {
		f.Errorf("%s has the handle %+v, want an id and a kind", sb.Name(), sb.Handle())
	}
	found := f.list(f.rt, sb.Name())
	if len(found) != 1 {
		f.Errorf("List has %d resources named %q, want 1", len(found), sb.Name())
	} else if diff := cmp.Diff(sb.Handle(), found[0].Handle); diff != "" {
		f.Errorf("List and Handle() differ (-handle +list):\n%s", diff)
	}
	if f.p.ProviderName != nil {
		if got := f.p.ProviderName(f.T, sb.Handle()); got != sb.Name() {
			f.Errorf("the provider calls %s %q, want the sandbox's name %q", sb.Handle().Kind, got, sb.Name())
		}
	}
}

func testBadNames(f *fixture) {
	names := []string{
		"/", "/tmp/x", "a/b", "../x", "..", ".", "a..b", "-x", ".x", "_x", " ", "a b", "a\nb", "a\n", "a\x00b",
		"ü", "~", "a:b", `a\b`, "x", strings.Repeat("n", 101),
	}
	for _, name := range names {
		ctx, cancel := f.patience()
		sb, err := f.env.Open(ctx, f.spec(named(name)))
		cancel()
		if err == nil {
			f.Errorf("Open took the name %q", name)
			f.close(sb)
			continue
		}
		p := wantError[*runtime.ProvisionError](f, "Open of "+name, err)
		if p != nil && (p.Stage != runtime.StageName || !p.Permanent) {
			f.Errorf("Open of %q: stage %q, permanent %v, want %q and true", name, p.Stage, p.Permanent, runtime.StageName)
		}
	}
	f.nothingLeft("by refused names")
}

func testConflict(f *fixture) {
	owner := f.open()
	f.run(owner, Write("mine", "precious"), Child("pid"))
	_, other := f.worker()

	for who, env := range map[string]runtime.Environment{"the same worker": f.env, "another worker": other} {
		ctx, cancel := f.patience()
		loser, err := env.Open(ctx, f.spec(named(owner.Name())))
		cancel()
		if err == nil {
			f.close(loser)
			f.Fatalf("%s opened a name that has a live owner", who)
		}
		wantError[*runtime.ProvisionError](f, "a conflict", err)
		c := wantError[*runtime.ConflictError](f, "a conflict", err)
		if c == nil {
			continue
		}
		if diff := cmp.Diff(owner.Handle(), c.Owner); c.Name != owner.Name() || diff != "" {
			f.Errorf("conflict with %q (-want +got):\n%s", c.Name, diff)
		}
	}

	if got := f.run(owner, Read("mine")); got != "precious" {
		f.Errorf("the owner's file reads %q after the conflict", got)
	}
	if !f.alive(owner, "pid") {
		f.Error("the owner's process is dead after the conflict")
	}
	if n := len(f.list(f.rt, owner.Name())); n != 1 {
		f.Errorf("List has %d resources with the name after the conflict, want 1", n)
	}

	f.close(owner)
	heir := f.openIn(other, named(owner.Name()))
	if r := f.exec(heir, runtime.Command{Argv: f.h.Programs.Program(Read("mine"))}); r.exit.OK() {
		f.Errorf("the next sandbox of the name has its predecessor's file: %q", r.stdout)
	}
}

func testRaceForAName(f *fixture) {
	_, other := f.worker()
	name := f.spec().Name
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		won  []runtime.Sandbox
		lost []error
	)
	for i := range 8 {
		env := f.env
		if i%2 == 1 {
			env = other
		}
		wg.Go(func() {
			ctx, cancel := f.patience()
			defer cancel()
			sb, err := env.Open(ctx, f.spec(named(name)))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				lost = append(lost, err)
			} else {
				won = append(won, sb)
			}
		})
	}
	wg.Wait()
	for _, sb := range won {
		f.Cleanup(func() { f.close(sb) })
	}
	if len(won) != 1 {
		f.Fatalf("%d of 8 opened one name, want exactly 1; errors: %v", len(won), errors.Join(lost...))
	}
	for _, err := range lost {
		wantError[*runtime.ConflictError](f, "the loser of a race", err)
	}
	f.run(won[0], Write("x", "still mine"))
}

func testNeighbours(f *fixture) {
	a, b := f.open(), f.open()
	f.run(a, Write("file", "of a"), Child("pid"))
	f.run(b, Write("file", "of b"), Child("pid"))
	if got := f.run(b, Read("file")); got != "of b" {
		f.Errorf("b reads %q", got)
	}
	ctx, cancel := f.patience()
	defer cancel()
	if err := a.EndProcesses(ctx); err != nil {
		f.Errorf("EndProcesses: %v", err)
	}
	if !f.alive(b, "pid") {
		f.Error("EndProcesses of a killed a process of b")
	}
	f.close(a)
	if !f.alive(b, "pid") || f.run(b, Read("file")) != "of b" {
		f.Error("Close of a touched b")
	}
}

func testPlaces(f *fixture) {
	sb := f.open()
	seen := map[string]runtime.Place{}
	for _, p := range runtime.Places {
		path := sb.Path(p)
		if !strings.HasPrefix(path, "/") {
			f.Errorf("Path(%s) = %q, want an absolute path", p, path)
		}
		if twin, ok := seen[path]; ok {
			f.Errorf("%s and %s are both at %s", p, twin, path)
		}
		seen[path] = p
	}
	for _, p := range []runtime.Place{runtime.AgentLogs, runtime.Verdict, runtime.Artifacts} {
		if !strings.HasPrefix(sb.Path(p), sb.Path(runtime.Logs)+"/") {
			f.Errorf("%s is at %s, want it below %s of logs", p, sb.Path(p), sb.Path(runtime.Logs))
		}
	}
	for _, p := range []runtime.Place{runtime.Tests, runtime.Solution} {
		if r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Write(sb.Path(p)+"/x", ""))}); r.err == nil && r.exit.OK() {
			f.Errorf("%s exists before anything was copied into it", p)
		}
	}
}
