// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/tidemill/tidemill/runtime"
)

func testClose(f *fixture) {
	sb := f.open()
	f.copyIn(sb, runtime.Tests, runtime.CopyOptions{}, file("x", "", 0o644))
	f.run(sb, Write("x", "y"), Mkdir("d/e"), Symlink("/", "root"), Child("pid"))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { f.close(sb) })
	}
	wg.Wait()
	f.gone(sb, "after Close")
	f.close(sb)
}

func (f *fixture) gone(sb runtime.Sandbox, when string) {
	f.Helper()
	if found := f.list(f.rt, sb.Name()); len(found) > 0 {
		f.Errorf("%s List still has %+v", when, found)
	}
	f.nothingLeft(when)
}

func testCloseAfterCancel(f *fixture) {
	sb := f.open()
	f.run(sb, Write("x", "y"), Child("pid"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := sb.Close(ctx); err != nil {
		f.Errorf("Close with an ended context: %v; it has a budget of its own", err)
	}
	f.gone(sb, "after Close with an ended context")
}

func testCloseUnderACommand(f *fixture) {
	sb := f.open()
	r := f.start(sb, runtime.Command{Argv: f.h.Programs.Program(IgnoreTerm(), Child("pid"), Out("ready\n"), Hold())})
	r.awaitLine("ready")
	f.close(sb)
	if exit, err := r.wait(); !errors.Is(err, runtime.ErrClosed) {
		f.Errorf("a command under which the sandbox was closed: exit %+v, error %v, want ErrClosed", exit, err)
	}
	f.gone(sb, "after Close under a command")
}

func testAfterClose(f *fixture) {
	sb := f.open()
	f.copyIn(sb, runtime.Artifacts, runtime.CopyOptions{}, file("x", "", 0o644))
	path := sb.Path(runtime.Workdir)
	f.close(sb)
	ctx, cancel := f.patience()
	defer cancel()
	calls := map[string]func() error{
		"Exec":         func() error { return f.exec(sb, runtime.Command{Argv: f.h.Programs.Program()}).err },
		"CopyIn":       func() error { return sb.CopyIn(ctx, runtime.Workdir, strings.NewReader(""), runtime.CopyOptions{}) },
		"CopyOut":      func() error { _, err := f.tryCopyOut(sb, runtime.Artifacts, ".", runtime.CopyLimits{}); return err },
		"EndProcesses": func() error { return sb.EndProcesses(ctx) },
		"SetPhase":     func() error { return sb.SetPhase(ctx, runtime.Grade) },
		"Endpoint":     func() error { _, err := sb.Endpoint(ctx, "", 80); return err },
		"Alive":        func() error { return sb.Alive(ctx) },
	}
	if in, ok := sb.(runtime.Ingress); ok {
		calls["Ingress"] = func() error { _, err := in.Ingress(ctx, "late"); return err }
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, runtime.ErrClosed) {
			f.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
	if _, err := sb.Evidence(ctx, 0); err != nil && !errors.Is(err, runtime.ErrClosed) {
		f.Errorf("Evidence after Close: %v, want none or ErrClosed", err)
	}
	if sb.Name() == "" || sb.Handle().ID == "" || sb.Path(runtime.Workdir) != path {
		f.Error("name, handle and paths are kept after Close, for logs")
	}
	f.nothingLeft("after calls on a closed sandbox")
}
