// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"io"
	"net/http"
	"sync"

	"github.com/tidemill/tidemill/runtime"
)

func testPhases(f *fixture) {
	sb := f.open()
	for _, p := range []runtime.Phase{runtime.Setup, runtime.Agent, runtime.Grade, runtime.Agent} {
		ctx, cancel := f.patience()
		if err := sb.SetPhase(ctx, p); err != nil {
			f.Errorf("SetPhase(%s): %v", p, err)
		}
		cancel()
		f.run(sb)
	}
	ctx, cancel := f.patience()
	defer cancel()
	if err := sb.SetPhase(ctx, "lunch"); err == nil {
		f.Error("SetPhase took a phase that there isn't")
	}
}

func testUsers(f *fixture) {
	if !f.rt.Properties().Users {
		sb := f.open()
		r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(), User: "somebody"})
		f.refusal("a command's user", ask{feature: []string{"user", "users"}}, r.err)
		return
	}
	one, two := f.h.Users[0], f.h.Users[1]
	sb := f.open(func(s *runtime.Spec) { s.Users = map[runtime.Phase]string{runtime.Agent: one, runtime.Grade: two} })
	for phase, want := range map[runtime.Phase]string{runtime.Agent: one, runtime.Grade: two} {
		ctx, cancel := f.patience()
		if err := sb.SetPhase(ctx, phase); err != nil {
			f.Fatalf("SetPhase(%s): %v", phase, err)
		}
		cancel()
		if got := f.run(sb, User()); got != want+"\n" {
			f.Errorf("in phase %s the user is %q, want %q", phase, got, want)
		}
		for _, user := range []string{one, two} {
			if r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(User()), User: user}); r.stdout != user+"\n" {
				f.Errorf("a command of user %s runs as %q, error %v", user, r.stdout, r.err)
			}
		}
	}
}

func testPrivatePlace(f *fixture) {
	if !f.rt.Properties().Users {
		f.Skip("there are no users to keep a place from")
	}
	one, two := f.h.Users[0], f.h.Users[1]
	sb := f.open()
	f.copyIn(sb, runtime.Tests, runtime.CopyOptions{Fresh: true, User: one, Private: true}, file("secret", "s", 0o644))
	read := f.h.Programs.Program(Read(sb.Path(runtime.Tests) + "/secret"))
	if r := f.exec(sb, runtime.Command{Argv: read, User: one}); r.err != nil || r.stdout != "s" {
		f.Errorf("its user reads %q, exit %+v, error %v", r.stdout, r.exit, r.err)
	}
	if r := f.exec(sb, runtime.Command{Argv: read, User: two}); r.err != nil || r.exit.OK() || r.stdout != "" {
		f.Errorf("another user reads %q, exit %+v, error %v", r.stdout, r.exit, r.err)
	}
	write := f.h.Programs.Program(Write(sb.Path(runtime.Tests)+"/forged", "x"))
	if r := f.exec(sb, runtime.Command{Argv: write, User: two}); r.err != nil || r.exit.OK() {
		f.Errorf("another user wrote into a private place: exit %+v, error %v", r.exit, r.err)
	}
}

func testEvidence(f *fixture) {
	sb := f.open()
	f.run(sb, Out("something"))
	for _, tail := range []int{0, 1, 500} {
		ctx, cancel := f.patience()
		if _, err := sb.Evidence(ctx, tail); err != nil {
			f.Errorf("Evidence(%d): %v", tail, err)
		}
		if err := sb.Alive(ctx); err != nil {
			f.Errorf("Alive: %v", err)
		}
		cancel()
	}
}

func testIngress(f *fixture) {
	sb := f.open()
	in, ok := sb.(runtime.Ingress)
	if !ok {
		f.Skip("this runtime offers no ingress")
	}
	ctx, cancel := f.patience()
	defer cancel()
	l, err := in.Ingress(ctx, "model")
	if err != nil {
		f.Fatalf("Ingress: %v", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "you asked for "+r.URL.Path)
	})}
	var wg sync.WaitGroup
	ended := make(chan error, 1)
	wg.Go(func() { ended <- server.Serve(l) })
	if !f.h.NoFetch {
		if got := f.run(sb, Fetch(l.URL+"/v1/models")); got != "you asked for /v1/models" {
			f.Errorf("a program inside got %q", got)
		}
	}
	f.close(sb)
	<-ended // closing the sandbox closes the listener, and Serve returns
	_ = server.Close()
	wg.Wait()
}
