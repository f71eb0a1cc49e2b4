// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"context"
	"errors"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// testTimeout can't know how long a program takes to get going, so it gives it more
// time until it got far enough to have left a child.
func testTimeout(f *fixture) {
	sb := f.open()
	for what, steps := range map[string][]Step{
		"obedient": {Child("pid"), Out("ready\n"), Hold()},
		"stubborn": {IgnoreTerm(), Child("pid"), Out("ready\n"), Hold()},
	} {
		for timeout := 250 * time.Millisecond; ; timeout *= 2 {
			out := newLineWatch()
			r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(steps...), Stdout: out, Timeout: timeout})
			if r.err != nil {
				f.Fatalf("%s: error %v; an elapsed timeout is a result", what, r.err)
			}
			if !r.exit.TimedOut || r.exit.OK() {
				f.Fatalf("%s: exit %+v, want TimedOut", what, r.exit)
			}
			if !out.has("ready") && timeout < f.h.Patience/2 {
				continue
			}
			if f.alive(sb, "pid") {
				f.Errorf("%s: the child outlived the timeout", what)
			}
			break
		}
	}
	r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Exit(3)), Timeout: f.h.Patience})
	if r.err != nil || r.exit.TimedOut || r.exit.Code != 3 {
		f.Errorf("a timeout that doesn't elapse: exit %+v, error %v", r.exit, r.err)
	}
}

func testCancel(f *fixture) {
	sb := f.open()
	r := f.start(sb, runtime.Command{Argv: f.h.Programs.Program(IgnoreTerm(), Child("pid"), Out("ready\n"), Hold())})
	r.awaitLine("ready")
	reason := errors.New("the lease is lost")
	r.cancel(reason)
	if exit, err := r.wait(); !errors.Is(err, reason) {
		f.Errorf("exit %+v, error %v, want the cause %q", exit, err, reason)
	}
	if f.alive(sb, "pid") {
		f.Error("the child outlived the cancelled command")
	}

	// A context that ended before starts nothing.
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	if _, err := sb.Exec(ctx, runtime.Command{Argv: f.h.Programs.Program(Write("started", ""))}); !errors.Is(err, reason) {
		f.Errorf("Exec with an ended context: error %v, want the cause %q", err, reason)
	}
	if r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Read("started"))}); r.exit.OK() {
		f.Error("Exec with an ended context started the program")
	}
}

func testEndProcesses(f *fixture) {
	sb := f.open()
	f.run(sb, Child("one"), Child("two"), IgnoreTerm(), Child("stubborn"))
	f.run(sb, Child("later"))
	all := []string{"one", "two", "stubborn", "later"}
	for _, pid := range all {
		if !f.alive(sb, pid) {
			f.Errorf("the child %q didn't outlive its command; only EndProcesses ends it", pid)
		}
	}
	for range 2 { // with and without anything to do
		ctx, cancel := f.patience()
		if err := sb.EndProcesses(ctx); err != nil {
			f.Errorf("EndProcesses: %v", err)
		}
		cancel()
		for _, pid := range all {
			if f.alive(sb, pid) {
				f.Errorf("the child %q is alive after EndProcesses", pid)
			}
		}
	}
	if got := f.run(sb, Out("usable")); got != "usable" {
		f.Errorf("after EndProcesses a command prints %q", got)
	}
}

func testLoudChild(f *fixture) {
	sb := f.open()
	r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Loud("pid"), Out("printed"), Exit(6))})
	if r.err != nil || r.exit.Code != 6 || r.stdout != "printed" {
		f.Errorf("a program whose child keeps its streams: exit %+v, error %v, stdout %q; want 6 as soon as it ends", r.exit, r.err, r.stdout)
	}
}

func testOwnProcesses(f *fixture) {
	if !f.rt.Properties().OwnProcesses {
		if len(f.rt.Properties().Unprotected) == 0 {
			f.Error("Properties has neither OwnProcesses nor a sentence in Unprotected")
		}
		f.Skip("processes in sessions of their own may outlive their sandbox here, and Properties says so")
	}
	sb := f.open()
	f.run(sb, Daemon("pid"))
	if !f.alive(sb, "pid") {
		f.Error("the daemon didn't outlive its command")
	}
	ctx, cancel := f.patience()
	defer cancel()
	if err := sb.EndProcesses(ctx); err != nil {
		f.Errorf("EndProcesses: %v", err)
	}
	if f.alive(sb, "pid") {
		f.Error("a process in a session of its own outlived EndProcesses")
	}
	f.run(sb, Daemon("pid"))
	f.close(sb)
	f.nothingLeft("by Close with a daemon running")
}
