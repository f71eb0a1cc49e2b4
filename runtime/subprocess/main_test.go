// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/runtime"
)

const testStore = "6f0c6c0e-54a6-4d64-a1ab-6f2c5c0f7e11"

// TestMain plays the workers that are killed or stopped as well; see crash_test.go and
// stopped_test.go.
func TestMain(m *testing.M) {
	Main()
	if root := os.Getenv(crashRootVar); root != "" {
		crashingWorker(root, os.Getenv(crashSpecVar))
	}
	if root := os.Getenv(stoppedRootVar); root != "" {
		stoppedWorker(root)
	}
	goleak.VerifyTestMain(m)
}

// patience turns a hang into a failure.
const patience = time.Minute

func newRuntime(t testing.TB, cfg Config) *Runtime {
	t.Helper()
	if cfg.Root == "" {
		cfg.Root = t.TempDir()
	}
	if cfg.Store == "" {
		cfg.Store = testStore
	}
	if cfg.Isolation == "" {
		cfg.Isolation = None // what is tested mostly; see nested_linux_test.go
	}
	rt, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt
}

func testSpec(name string) runtime.Spec {
	return runtime.Spec{
		Name:    name,
		Labels:  runtime.Labels{Run: "r", Task: "t/0", Trial: name, Attempt: 1},
		Network: map[runtime.Phase]runtime.Network{runtime.Agent: {Policy: runtime.FullInternet}},
	}
}

func tryOpen(t testing.TB, rt *Runtime, spec runtime.Spec) (*Sandbox, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	env, err := rt.Prepare(ctx, runtime.RunSpec{Network: []runtime.Network{{Policy: runtime.FullInternet}}})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := env.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return sb.(*Sandbox), nil
}

// open opens a sandbox; the test's end closes it and looks for leftovers.
func open(t testing.TB, rt *Runtime, name string) *Sandbox {
	t.Helper()
	sb, err := tryOpen(t, rt, testSpec(name))
	if err != nil {
		t.Fatalf("open %s: %v", name, err)
	}
	t.Cleanup(func() { closeSandbox(t, sb) })
	return sb
}

func closeSandbox(t testing.TB, sb *Sandbox) {
	t.Helper()
	if err := sb.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// sh runs a shell script that has to succeed and returns its output.
func sh(t testing.TB, sb *Sandbox, script string) string {
	t.Helper()
	var out, errs bytes.Buffer
	exit, err := sb.Exec(t.Context(), runtime.Command{
		Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &errs, Timeout: patience,
	})
	if err != nil || !exit.OK() {
		t.Fatalf("sh -c %q: exit %+v, error %v, stderr %q", script, exit, err, errs.String())
	}
	return out.String()
}

// entriesOf lists what is below the root, without the spare directories that a runtime
// keeps as long as it lives.
func entriesOf(t testing.TB, root string) []string {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !spareOf(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// alivePID tells whether a process exists and is no zombie.
func alivePID(t testing.TB, pid string) bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(pid), "stat"))
	if err != nil {
		return false
	}
	state := data[bytes.LastIndexByte(data, ')')+2]
	return state != 'Z' && state != 'X'
}

func wantConflict(t testing.TB, err error) *runtime.ConflictError {
	t.Helper()
	conflict := (*runtime.ConflictError)(nil)
	provision := (*runtime.ProvisionError)(nil)
	if !errors.As(err, &provision) || !errors.As(err, &conflict) {
		t.Fatalf("error %v (%T), want a ConflictError in a ProvisionError", err, err)
	}
	return conflict
}

func mustWrite(t testing.TB, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func fatal(a ...any) {
	fmt.Fprintln(os.Stderr, a...)
	os.Exit(3)
}
