// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"errors"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

// keeping skips a topic where the runtime has no such ability, and checks that it has
// both halves of it or none.
func (f *fixture) keeping(sb runtime.Sandbox) (runtime.Keeper, runtime.Attacher) {
	f.Helper()
	keeper, keeps := sb.(runtime.Keeper)
	attacher, attaches := f.rt.(runtime.Attacher)
	if keeps != attaches {
		f.Fatalf("sandboxes are a Keeper: %v, the runtime is an Attacher: %v; want both or none", keeps, attaches)
	}
	if !keeps {
		f.Skip("the runtime keeps no sandboxes")
	}
	return keeper, attacher
}

func (f *fixture) keep(k runtime.Keeper) {
	f.Helper()
	ctx, cancel := f.patience()
	defer cancel()
	if err := k.Keep(ctx); err != nil {
		f.Fatalf("Keep: %v", err)
	}
}

// attach goes on with a kept sandbox, which the end of the topic closes.
func (f *fixture) attach(a runtime.Attacher, h runtime.Handle) runtime.Sandbox {
	f.Helper()
	ctx, cancel := f.patience()
	defer cancel()
	sb, err := a.Attach(ctx, h)
	if err != nil {
		f.Fatalf("Attach: %v", err)
	}
	f.Cleanup(func() { f.close(sb) })
	return sb
}

func (f *fixture) tryAttach(a runtime.Attacher, h runtime.Handle) error {
	f.Helper()
	ctx, cancel := f.patience()
	defer cancel()
	sb, err := a.Attach(ctx, h)
	if err == nil {
		f.close(sb)
	}
	return err
}

// another is a worker that attaches.
func (f *fixture) another() runtime.Attacher {
	f.Helper()
	rt, _ := f.worker()
	a, ok := rt.(runtime.Attacher)
	if !ok {
		f.Fatal("another worker's runtime is no Attacher")
	}
	return a
}

// testKeep follows a sandbox from the worker that made it to another that goes on with
// it, and on to its end.
func testKeep(f *fixture) {
	sb := f.open(func(s *runtime.Spec) { s.Env["KEPT_VARIABLE"] = "of the spec" })
	keeper, _ := f.keeping(sb)
	want := f.spec(named(sb.Name())).Labels
	f.run(sb, Write("left", "by the first"), Mkdir("d"), Child("pid"))
	f.copyIn(sb, runtime.Tests, runtime.CopyOptions{}, file("check", "tests", 0o644))
	r := f.start(sb, runtime.Command{Argv: f.h.Programs.Program(Out("ready\n"), Hold())})
	r.awaitLine("ready")
	f.keep(keeper)
	// What it sees later may have process ids of its own, so the provider is asked.
	for _, left := range f.p.Left(f.T, f.mark) {
		if strings.HasPrefix(left, "process ") {
			f.Errorf("outlived Keep: %s", left)
		}
	}
	if exit, err := r.wait(); err == nil && exit.OK() {
		f.Error("the command that ran ended well under Keep")
	}
	f.Cleanup(func() { f.destroy(f.rt, sb.Handle()) })

	found := f.list(f.rt, sb.Name())
	if len(found) != 1 || !found[0].Kept || found[0].Live {
		f.Fatalf("List has %+v of a kept sandbox, want one that is Kept and not Live", found)
	}
	if diff := cmp.Diff(want, found[0].Labels); diff != "" {
		f.Errorf("labels (-given +listed):\n%s", diff)
	}
	if diff := cmp.Diff(sb.Handle(), found[0].Handle); diff != "" {
		f.Errorf("handle (-own +listed):\n%s", diff)
	}
	f.close(sb) // says and does nothing
	if r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program()}); !errors.Is(r.err, runtime.ErrClosed) {
		f.Errorf("Exec in what was kept, by who kept it: %v, want ErrClosed", r.err)
	}

	heir := f.another()
	again := f.attach(heir, found[0].Handle)
	if again.Name() != sb.Name() || again.Path(runtime.Workdir) != sb.Path(runtime.Workdir) {
		f.Errorf("attached %s with its workdir at %s, it was %s at %s",
			again.Name(), again.Path(runtime.Workdir), sb.Name(), sb.Path(runtime.Workdir))
	}
	if diff := cmp.Diff(sb.Handle(), again.Handle()); diff != "" {
		f.Errorf("handle (-kept +attached):\n%s", diff)
	}
	if got := f.run(again, Read("left")); got != "by the first" {
		f.Errorf("its file reads %q", got)
	}
	if got := f.run(again, Echo("KEPT_VARIABLE")); strings.TrimSpace(got) != "of the spec" {
		f.Errorf("a variable of the spec is %q", got)
	}
	f.copyOut(again, runtime.Tests, "check", runtime.CopyLimits{}) // fails where it isn't there
	f.run(again, Write("second", "by the heir"))

	// While it has an owner it is nobody else's.
	if found := f.list(f.rt, sb.Name()); len(found) != 1 || !found[0].Live {
		f.Errorf("List has %+v of an attached sandbox, want one that is Live", found)
	}
	wantError[*runtime.ConflictError](f, "Attach to what has an owner", f.tryAttach(f.another(), sb.Handle()))

	if k, ok := again.(runtime.Keeper); ok {
		f.keep(k)
	}
	last := f.attach(f.another(), sb.Handle())
	if got := f.run(last, Read("second")); got != "by the heir" {
		f.Errorf("the heir's file reads %q", got)
	}
	f.close(last)
	f.gone(last, "after Close of an attached sandbox")
	if err := f.tryAttach(heir, sb.Handle()); !errors.Is(err, runtime.ErrLost) {
		f.Errorf("Attach to what is gone: %v, want ErrLost", err)
	}
}

// testKeptName: a kept sandbox is not a dead owner's, so its name is taken.
func testKeptName(f *fixture) {
	sb := f.open()
	keeper, attacher := f.keeping(sb)
	f.keep(keeper)
	ctx, cancel := f.patience()
	defer cancel()
	late, err := f.env.Open(ctx, f.spec(named(sb.Name())))
	if err == nil {
		f.close(late)
		f.Fatal("Open took a kept sandbox's name")
	}
	if c := wantError[*runtime.ConflictError](f, "Open of a kept name", err); c != nil {
		if diff := cmp.Diff(sb.Handle(), c.Owner); diff != "" {
			f.Errorf("owner (-kept +named):\n%s", diff)
		}
	}
	f.destroy(f.rt, sb.Handle())
	f.gone(sb, "after Destroy of a kept sandbox")
	if err := f.tryAttach(attacher, sb.Handle()); !errors.Is(err, runtime.ErrLost) {
		f.Errorf("Attach to what was destroyed: %v, want ErrLost", err)
	}
	f.open(named(sb.Name()))
}

// testAttachAbandoned: what a crash left may be in any state, and was kept by nobody.
func testAttachAbandoned(f *fixture) {
	if f.p.Abandon == nil {
		f.Skip("the harness can't stage a crash")
	}
	_, attacher := f.keeping(f.open())
	handle := f.p.Abandon(f.T, f.runSpec(), f.spec())
	if err := f.tryAttach(attacher, handle); err == nil {
		f.Error("Attach went on with what a crashed worker left")
	}
	f.destroy(f.rt, handle)
}
