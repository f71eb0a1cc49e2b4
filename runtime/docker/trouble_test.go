// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"github.com/tidemill/tidemill/runtime"
)

// impatient makes the deadlines short enough for a test; the engine of a busy machine must
// still be able to keep them.
func impatient(c *Config) { c.Call, c.Slow, c.Close = 3*time.Second, 3*time.Second, 20*time.Second }

func withNetwork(s *runtime.Spec) {
	s.Network = map[runtime.Phase]runtime.Network{
		runtime.Agent: {Policy: runtime.NoInternet}, runtime.Grade: {Policy: runtime.FullInternet},
	}
}

// TestOpenUnderTrouble has the engine fall silent, lose its answer or break off at each
// step of an Open.
func TestOpenUnderTrouble(t *testing.T) {
	l := newLab(t)
	p := newProxy(t, l.cli)
	rt := l.runtime(t, p.at, impatient)
	sb := l.open(t, rt, withNetwork) // so that what is found out once has been
	sh(t, sb, "true")
	all := map[string]verdict{"silent": stall, "without an answer": swallow, "cut": cut}
	silent := map[string]verdict{"silent": stall}
	for _, at := range []struct {
		method, part string
		troubles     map[string]verdict
	}{
		{"POST", "/networks/create", all},
		{"POST", "/containers/create", all},
		{"HEAD", "/archive", silent},
		{"PUT", "/archive", silent},
		{"POST", "/start", all},
		{"POST", "/disconnect", silent},
	} {
		for what, v := range at.troubles {
			p.once(v, at.method, at.part)
			spec := l.spec(withNetwork)
			got, err := tryOpen(t, rt, spec)
			p.set(nil)
			if err == nil {
				if v != cut { // a request that was cut may be tried again by the HTTP client
					t.Errorf("%s %s %s: Open succeeded", at.method, at.part, what)
				}
				if err := got.Close(t.Context()); err != nil {
					t.Error(err)
				}
				continue
			}
			var provision *runtime.ProvisionError
			if !errors.As(err, &provision) || provision.Permanent {
				t.Errorf("%s %s %s: error %v, want a ProvisionError that may be tried again", at.method, at.part, what, err)
			}
			for _, left := range l.left(t) {
				if strings.Contains(left, spec.Name) {
					t.Errorf("%s %s %s: left behind: %s", at.method, at.part, what, left)
				}
			}
		}
	}
}

// TestOpenCancelledInMidCreate: what the engine made after nobody wanted it any more is
// removed.
func TestOpenCancelledInMidCreate(t *testing.T) {
	l := newLab(t)
	p := newProxy(t, l.cli)
	rt := l.runtime(t, p.at)
	env, err := rt.Prepare(t.Context(), runtime.RunSpec{Store: testStore})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"/containers/create", "/networks/create", "/start"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("the lease is lost")
		p.set(func(method, path string) verdict {
			if method == "POST" && strings.HasSuffix(path, part) {
				cancel(reason)
			}
			return pass
		})
		spec := l.spec(withNetwork)
		if _, err := env.Open(ctx, spec); !errors.Is(err, reason) {
			t.Errorf("%s: error %v, want the cause", part, err)
		}
		if left := l.left(t); len(left) > 0 {
			t.Errorf("%s: left behind: %v", part, left)
		}
	}
	p.set(nil)
	if err := env.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestExecUnderTrouble: whatever the engine does, the result is never an exit code that
// the program didn't have.
func TestExecUnderTrouble(t *testing.T) {
	l := newLab(t)
	p := newProxy(t, l.cli)
	sb := l.open(t, l.runtime(t, p.at, impatient))
	for what, set := range map[string]func(){
		"create is silent":        func() { p.once(stall, "POST", "/exec") },
		"start is silent":         func() { p.once(stall, "POST", "/start") },
		"start is not answered":   func() { p.once(swallow, "POST", "/start") },
		"start is cut":            func() { p.once(cut, "POST", "/start") },
		"start is cut afterwards": func() { p.once(swallow, "POST", "/start"); time.AfterFunc(time.Second, p.cutAll) },
	} {
		set()
		exit, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"sleep", "1000"}})
		p.set(nil)
		if err == nil || errors.Is(err, runtime.ErrLost) {
			t.Errorf("%s: exit %+v, error %v; want trouble of the runtime", what, exit, err)
		}
		l.onlyPID1(t, sb)
	}
	if got := sh(t, sb, "echo usable"); got != "usable\n" {
		t.Errorf("afterwards a command prints %q", got)
	}
}

// TestCutUnderACommand breaks all connections while a command runs that would end well.
func TestCutUnderACommand(t *testing.T) {
	l := newLab(t)
	p := newProxy(t, l.cli)
	sb := l.open(t, l.runtime(t, p.at))
	pipe, feed := newPipe(t)
	_, ended := blocked(t, sb, "echo ready; cat; exit 0", func(c *runtime.Command) { c.Stdin = pipe })
	p.cutAll()
	err := <-ended
	if !errors.Is(err, errCut) {
		t.Errorf("error %v, want that the connection broke", err)
	}
	_ = feed.Close()
	if err := sb.Alive(t.Context()); err != nil {
		t.Errorf("the sandbox outlived it: %v", err)
	}
	l.onlyPID1(t, sb)
}

// TestEngineGoesAway for longer than anybody waits.
func TestEngineGoesAway(t *testing.T) {
	l := newLab(t)
	p := newProxy(t, l.cli)
	sb := l.open(t, l.runtime(t, p.at, func(c *Config) { c.Call, c.Slow = 2*time.Second, 2*time.Second }))
	_, ended := blocked(t, sb, "echo ready; exec sleep 1000")
	p.set(func(string, string) verdict { return cut })
	p.cutAll()
	if err := <-ended; err == nil || strings.Contains(err.Error(), "exit code") {
		t.Errorf("error %v, want trouble of the runtime", err)
	}
	if err := sb.Alive(t.Context()); err == nil || errors.Is(err, runtime.ErrLost) {
		t.Errorf("Alive: %v; nobody knows", err)
	}
	p.set(nil)
	if err := sb.EndProcesses(t.Context()); err != nil {
		t.Error(err)
	}
	l.onlyPID1(t, sb)
}

// TestCloseUnderTrouble: Close ends in its time, says what is left, and can be repeated.
func TestCloseUnderTrouble(t *testing.T) {
	l := newLab(t)
	p := newProxy(t, l.cli)
	sb := l.open(t, l.runtime(t, p.at, func(c *Config) { c.Call, c.Slow, c.Close = 2*time.Second, 2*time.Second, 5*time.Second }), withNetwork)
	p.set(func(method, _ string) verdict {
		if method == "DELETE" {
			return stall
		}
		return pass
	})
	if err := sb.Close(t.Context()); err == nil {
		t.Error("Close of what can't be removed: no error")
	}
	p.set(nil)
	if err := sb.Close(t.Context()); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

// TestEventsBreakOff: what happened meanwhile is told when the stream is taken up again.
func TestEventsBreakOff(t *testing.T) {
	l := newLab(t)
	p := newProxy(t, l.cli)
	rt := l.runtime(t, p.at)
	sb := l.open(t, rt, func(s *runtime.Spec) { s.Resources.Memory = 32 << 20 })
	for range 2 {
		if exit, _ := try(t, sb, "exec "+eat); exit.Exhausted != runtime.OutOfMemory {
			t.Errorf("exit %+v, want it exhausted of memory", exit)
		}
		p.cutAll() // nothing else is under way
	}
	if exit, _ := try(t, sb, "kill -9 $$"); exit.Exhausted != "" || exit.Code != killed {
		t.Errorf("somebody's kill after that: exit %+v", exit)
	}
}

// TestNoEngine: who doesn't use it needs none, and who does is told what to do.
func TestNoEngine(t *testing.T) {
	rt, err := New(Config{Dir: t.TempDir(), Store: testStore, Client: []client.Opt{client.WithHost("unix:///nonexistent/docker.sock")}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if list, err := rt.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("List: %v, %v; want nothing", list, err)
	}
	p := rt.Properties()
	if len(p.Policies) != 0 || len(p.Unprotected) != 1 || !strings.Contains(p.Unprotected[0], "is the Docker daemon running?") {
		t.Errorf("Properties: %+v", p)
	}
	_, err = rt.Prepare(t.Context(), runtime.RunSpec{Network: []runtime.Network{{Policy: runtime.NoInternet}}})
	if err == nil || !strings.Contains(err.Error(), "is the Docker daemon running?") || !strings.Contains(err.Error(), "/nonexistent/docker.sock") {
		t.Errorf("Prepare: %v; want an error that says where it looked and what to do", err)
	}
}
