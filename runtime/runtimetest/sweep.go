// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"errors"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

func testList(f *fixture) {
	sb := f.open()
	want := f.spec(named(sb.Name())).Labels
	other, _ := f.worker()
	for who, rt := range map[string]runtime.Runtime{"its own worker": f.rt, "another worker": other} {
		found := f.list(rt, sb.Name())
		if len(found) != 1 {
			f.Errorf("%s lists %d resources named %s, want 1", who, len(found), sb.Name())
			continue
		}
		r := found[0]
		if diff := cmp.Diff(sb.Handle(), r.Handle); diff != "" {
			f.Errorf("%s: handle (-own +listed):\n%s", who, diff)
		}
		if diff := cmp.Diff(want, r.Labels); diff != "" {
			f.Errorf("%s: labels (-given +listed):\n%s", who, diff)
		}
		if r.Created.IsZero() {
			f.Errorf("%s: no time of creation", who)
		}
		if !r.Live && !f.rt.Properties().Remote {
			f.Errorf("%s: not Live, although its creator is", who)
		}
	}
	if h := sb.Handle(); h.Runtime != f.rt.Type() {
		f.Errorf("the handle is of runtime %q, want %q", h.Runtime, f.rt.Type())
	}
}

func testDestroy(f *fixture) {
	sb, neighbour := f.open(), f.open()
	f.run(sb, Write("x", "y"), Child("pid"))
	f.run(neighbour, Write("x", "mine"), Child("pid"))
	r := f.start(sb, runtime.Command{Argv: f.h.Programs.Program(Out("ready\n"), Hold())})
	r.awaitLine("ready")

	other, _ := f.worker()
	f.destroy(other, f.list(other, sb.Name())[0].Handle)
	if found := f.list(f.rt, sb.Name()); len(found) > 0 {
		f.Errorf("List has %+v after Destroy", found)
	}
	f.destroy(other, sb.Handle()) // gone already
	f.destroy(f.rt, sb.Handle())

	// Its worker learns that the sandbox died under it.
	if exit, err := r.wait(); !errors.Is(err, runtime.ErrLost) {
		f.Errorf("the command that ran: exit %+v, error %v, want ErrLost", exit, err)
	}
	ctx, cancel := f.patience()
	defer cancel()
	if err := sb.Alive(ctx); !errors.Is(err, runtime.ErrLost) {
		f.Errorf("Alive: %v, want ErrLost", err)
	}
	if r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program()}); !errors.Is(r.err, runtime.ErrLost) {
		f.Errorf("Exec: exit %+v, error %v, want ErrLost", r.exit, r.err)
	}
	if err := f.tryCopyIn(sb, runtime.Workdir, runtime.CopyOptions{}, file("x", "", 0o644)); !errors.Is(err, runtime.ErrLost) {
		f.Errorf("CopyIn: %v, want ErrLost", err)
	}
	if _, err := f.tryCopyOut(sb, runtime.Workdir, ".", runtime.CopyLimits{}); !errors.Is(err, runtime.ErrLost) {
		f.Errorf("CopyOut: %v, want ErrLost", err)
	}
	f.close(sb)
	if !f.alive(neighbour, "pid") || f.run(neighbour, Read("x")) != "mine" {
		f.Error("Destroy touched a neighbour")
	}
}

func testDestroyStaleHandle(f *fixture) {
	old := f.open()
	stale := old.Handle()
	f.close(old)
	heir := f.open(named(old.Name()))
	f.run(heir, Write("x", "of the heir"), Child("pid"))
	other, _ := f.worker()
	for _, rt := range []runtime.Runtime{f.rt, other} {
		f.destroy(rt, stale) // no error: that resource is gone
	}
	f.close(old)
	if got := f.run(heir, Read("x")); got != "of the heir" || !f.alive(heir, "pid") {
		f.Errorf("a stale handle touched the name's new owner; its file reads %q", got)
	}
	if n := len(f.list(f.rt, heir.Name())); n != 1 {
		f.Errorf("List has %d resources of the name, want the heir", n)
	}
	unknown := heir.Handle()
	unknown.ID += "-unknown"
	f.destroy(f.rt, unknown)
}

// testAbandoned follows what a crashed worker left: a new worker sees it, and its
// name can be had again. Whoever is to abandon may write a file "abandoned".
func testAbandoned(f *fixture) {
	if f.p.Abandon == nil {
		f.Skip("the harness can't stage a crash")
	}
	spec := f.spec()
	handle := f.p.Abandon(f.T, f.runSpec(), spec)
	found := f.list(f.rt, spec.Name)
	if len(found) != 1 {
		f.Fatalf("List has %d resources of a crashed worker, want 1", len(found))
	}
	if diff := cmp.Diff(handle, found[0].Handle); diff != "" {
		f.Errorf("handle (-created +listed):\n%s", diff)
	}
	if diff := cmp.Diff(spec.Labels, found[0].Labels); diff != "" {
		f.Errorf("labels (-given +listed):\n%s", diff)
	}
	if found[0].Live {
		f.Error("what a crashed worker left is listed as Live")
	}

	if !f.h.TakesOver {
		f.refusesAbandoned(spec)
	}
	heir := f.open(named(spec.Name))
	if r := f.exec(heir, runtime.Command{Argv: f.h.Programs.Program(Read("abandoned"))}); r.exit.OK() {
		f.Error("the heir has its predecessor's files")
	}
	f.destroy(f.rt, handle) // stale by now
	f.run(heir)
}

// refusesAbandoned opens a name that a crashed worker left. A name proves nothing, so
// that is a conflict, and the way on is the handle in it.
func (f *fixture) refusesAbandoned(spec runtime.Spec) {
	f.Helper()
	ctx, cancel := f.patience()
	defer cancel()
	sb, err := f.env.Open(ctx, spec)
	if err == nil {
		f.close(sb)
		f.Fatal("Open took over what a crashed worker left; a harness with TakesOver says that it may")
	}
	if c := wantError[*runtime.ConflictError](f, "Open of an abandoned name", err); c != nil {
		f.destroy(f.rt, c.Owner)
	}
}
