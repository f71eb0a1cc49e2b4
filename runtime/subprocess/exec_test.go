// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

func TestEnvironmentIsAnAllowList(t *testing.T) {
	for _, name := range []string{"SOME_API_KEY", "NATS_URL", "AWS_SECRET_ACCESS_KEY", "HARMLESS", "LC_TIME", markVar} {
		t.Setenv(name, "of the worker")
	}
	t.Setenv("LANG", "C.UTF-8")
	t.Setenv("LC_ALL", "C")
	t.Setenv("TZ", "UTC")
	rt := newRuntime(t, Config{Path: "/usr/bin:/bin"})
	spec := testSpec("xy")
	spec.Env = map[string]string{"GIVEN": "spec", "BOTH": "spec", markVar: "forged"}
	sb, err := tryOpen(t, rt, spec)
	if err != nil {
		t.Fatal(err)
	}
	defer closeSandbox(t, sb)
	var out bytes.Buffer
	exit, err := sb.Exec(t.Context(), runtime.Command{
		Argv: []string{"env"}, Stdout: &out, Env: map[string]string{"BOTH": "command", markVar: "forged"},
	})
	if err != nil || !exit.OK() {
		t.Fatal(exit, err)
	}
	got := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = value
	}
	want := map[string]string{
		"PATH": "/usr/bin:/bin", "HOME": sb.Path(runtime.Workdir), "TMPDIR": sb.sidePath + "/tmp",
		"LANG": "C.UTF-8", "LC_ALL": "C", "TZ": "UTC", "GIVEN": "spec", "BOTH": "command",
		markVar: sb.estate.Nonce + ".1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	sh(t, sb, `: >"$TMPDIR/writable"`)
}

func TestLookUp(t *testing.T) {
	sb := open(t, newRuntime(t, Config{}), "xy")
	sh(t, sb, `mkdir bin dir other dir/prog; echo text >other/prog
printf '#!/bin/sh\necho "found $0 $1"\n' >bin/prog; chmod +x bin/prog; cp bin/prog local`)
	work := sb.Path(runtime.Workdir)
	for _, c := range []struct{ what, path, argv0, want string }{
		{"in PATH", work + "/bin", "prog", "found " + work + "/bin/prog 1\n"},
		{"past a directory and a file without x", work + "/dir:" + work + "/other:" + work + "/bin", "prog", "found " + work + "/bin/prog 1\n"},
		{"a relative element", "bin", "prog", "found " + work + "/bin/prog 1\n"},
		{"an empty element is the directory", ":/nowhere", "local", "found " + work + "/local 1\n"},
		{"a path is relative to the directory", "/nowhere", "./local", "found ./local 1\n"},
	} {
		var out bytes.Buffer
		_, err := sb.Exec(t.Context(), runtime.Command{
			Argv: []string{c.argv0, "1"}, Env: map[string]string{"PATH": c.path}, Stdout: &out,
		})
		if err != nil || out.String() != c.want {
			t.Errorf("%s: %q, error %v; want %q", c.what, out.String(), err, c.want)
		}
	}
	for _, c := range []struct{ what, path, argv0, want string }{
		{"nowhere", "/nowhere", "prog", "can't start \"prog\": it is not on the PATH of the sandbox: no such file or directory"},
		{"only without x", work + "/other", "prog", "permission denied"},
		{"a directory", "", work + "/dir", "permission denied"},
		{"a missing interpreter", "", work + "/script", "no such file"},
	} {
		sh(t, sb, `printf '#!/no/such/interpreter\n' >script; chmod +x script`)
		_, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{c.argv0}, Env: map[string]string{"PATH": c.path}})
		if start := (*runtime.StartError)(nil); !errors.As(err, &start) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v (%T), want a StartError with %q", c.what, err, err, c.want)
		}
	}
}

func TestCommandsThatCantBe(t *testing.T) {
	sb := open(t, newRuntime(t, Config{}), "xy")
	for what, cmd := range map[string]runtime.Command{
		"a directory outside": {Argv: []string{"true"}, Dir: "../x"},
		"a variable with =":   {Argv: []string{"true"}, Env: map[string]string{"A=B": "c"}},
		"a variable with NUL": {Argv: []string{"true"}, Env: map[string]string{"A": "b\x00c"}},
		"an argument of NUL":  {Argv: []string{"true", "a\x00b"}},
		"too many arguments":  {Argv: []string{"true", strings.Repeat("x", 8<<20)}},
	} {
		_, err := sb.Exec(t.Context(), cmd)
		if start := (*runtime.StartError)(nil); !errors.As(err, &start) {
			t.Errorf("%s: error %v (%T), want a StartError", what, err, err)
		}
	}
	for what, cmd := range map[string]runtime.Command{
		"a user":    {Argv: []string{"true"}, User: "nobody"},
		"a service": {Argv: []string{"true"}, Service: "db"},
	} {
		_, err := sb.Exec(t.Context(), cmd)
		if refused := (*runtime.UnsupportedError)(nil); !errors.As(err, &refused) {
			t.Errorf("%s: error %v (%T), want an UnsupportedError", what, err, err)
		}
	}
}

// slowWriter takes its time for everything that it is given.
type slowWriter struct {
	gate chan struct{}
	n    int
}

func (w *slowWriter) Write(p []byte) (int, error) {
	<-w.gate
	w.n += len(p)
	return len(p), nil
}

// A program ends with its output still in the pipe and a child holding the pipe open.
// However slow the writer is, all that the program printed arrives.
func TestNothingPrintedIsLost(t *testing.T) {
	sb := open(t, newRuntime(t, Config{OutputGrace: time.Nanosecond}), "xy")
	w := &slowWriter{gate: make(chan struct{})}
	ended := filepath.Join(sb.Path(runtime.Workdir), "ended")
	done := make(chan error, 1)
	go func() {
		_, err := sb.Exec(t.Context(), runtime.Command{Stdout: w, Argv: []string{
			"sh", "-c", "sleep 1000 & head -c 60000 /dev/zero; (while kill -0 $$; do :; done 2>/dev/null; : >ended) >/dev/null &",
		}})
		done <- err
	}()
	// The gate opens when the program is long gone.
	for {
		if _, err := os.Stat(ended); err == nil {
			break
		}
		time.Sleep(time.Millisecond) // the program can tell that it ends in no other way
	}
	close(w.gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if w.n != 60000 {
		t.Errorf("%d bytes arrived, want 60000", w.n)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestFailingWriter(t *testing.T) {
	sb := open(t, newRuntime(t, Config{}), "xy")
	full := errors.New("disk full")
	exit, err := sb.Exec(t.Context(), runtime.Command{
		Argv: []string{"sh", "-c", "head -c 1000000 /dev/zero; exit 5"}, Stdout: brokenWriter{full},
	})
	if !errors.Is(err, full) || exit.Code != 5 {
		t.Errorf("exit %+v, error %v; want the program's own end, 5, and the writer's error", exit, err)
	}
}

// A program that ends doesn't wait for input that never comes.
func TestStdinThatNeverEnds(t *testing.T) {
	sb := open(t, newRuntime(t, Config{}), "xy")
	r, w := io.Pipe()
	exit, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"true"}, Stdin: r})
	if err != nil || !exit.OK() {
		t.Errorf("exit %+v, error %v", exit, err)
	}
	w.Close() // the goroutine that reads ends
	exit, err = sb.Exec(t.Context(), runtime.Command{Argv: []string{"true"}, Stdin: strings.NewReader(strings.Repeat("x", 1<<20))})
	if err != nil || !exit.OK() {
		t.Errorf("unread input: exit %+v, error %v", exit, err)
	}
}

func TestGrace(t *testing.T) {
	sb := open(t, newRuntime(t, Config{KillGrace: patience}), "xy")
	for timeout := 100 * time.Millisecond; ; timeout *= 2 {
		var out bytes.Buffer
		exit, err := sb.Exec(t.Context(), runtime.Command{
			Argv: []string{"sh", "-c", `trap 'echo flushed; exit 4' TERM; echo ready; sleep 1000 & wait`}, Stdout: &out, Timeout: timeout,
		})
		if err == nil && !strings.Contains(out.String(), "ready") && timeout < patience {
			continue // it didn't get that far
		}
		if diff := cmp.Diff(runtime.Exit{Code: 4, TimedOut: true}, exit); err != nil || diff != "" || out.String() != "ready\nflushed\n" {
			t.Errorf("error %v, output %q, exit (-want +got):\n%s", err, out.String(), diff)
		}
		return
	}
}

// Many sandboxes at once write programs and run them: a descriptor that a fork copies
// must not make a fresh file "busy".
func TestManyAtOnce(t *testing.T) {
	rt := newRuntime(t, Config{})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			sb, err := tryOpen(t, rt, testSpec(fmt.Sprintf("n-%d", i)))
			if err != nil {
				t.Error(err)
				return
			}
			defer closeSandbox(t, sb)
			for round := range 3 {
				name := fmt.Sprintf("prog-%d", round)
				script := fmt.Sprintf("#!/bin/sh\nsleep 1000 >/dev/null 2>&1 & echo %d\n", i)
				if err := sb.CopyIn(context.Background(), runtime.Workdir, tarFile(name, script, 0o755), runtime.CopyOptions{}); err != nil {
					t.Error(err)
					return
				}
				var out bytes.Buffer
				exit, err := sb.Exec(context.Background(), runtime.Command{Argv: []string{"./" + name}, Stdout: &out})
				if err != nil || !exit.OK() || out.String() != fmt.Sprintf("%d\n", i) {
					t.Errorf("sandbox %d: exit %+v, error %v, output %q", i, exit, err, out.String())
				}
			}
		})
	}
	wg.Wait()
	if left := entriesOf(t, rt.cfg.Root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
