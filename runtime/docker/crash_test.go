// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

const (
	crashDirVar  = "DOCKER_TEST_CRASH_DIR"
	crashSpecVar = "DOCKER_TEST_CRASH_SPEC"
)

// crashingWorker opens a sandbox, prints its handle, starts what a hostile agent would
// start, says so, and waits to be killed.
func crashingWorker(dir, specJSON string) {
	fatal := func(a ...any) {
		fmt.Fprintln(os.Stderr, a...)
		os.Exit(3)
	}
	var spec runtime.Spec
	if err := json.Unmarshal([]byte(specJSON), &spec); err != nil {
		fatal(err)
	}
	rt, err := New(Config{Dir: dir, Store: testStore})
	if err != nil {
		fatal(err)
	}
	env, err := rt.Prepare(context.Background(), runtime.RunSpec{})
	if err != nil {
		fatal(err)
	}
	sb, err := env.Open(context.Background(), spec)
	if err != nil {
		fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(sb.Handle()); err != nil {
		fatal(err)
	}
	exit, err := sb.Exec(context.Background(), runtime.Command{Stdout: os.Stdout, Argv: []string{"sh", "-c", `
echo precious >abandoned
setsid sleep 1000 >/dev/null 2>&1 &
echo ready
exec sleep 1000`}})
	fatal("the program ended:", exit, err)
}

// crash runs a worker and kills it while a sandbox of its is open. It returns the
// sandbox's handle.
func crash(t *testing.T, dir string, spec runtime.Spec) runtime.Handle {
	t.Helper()
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), crashDirVar+"="+dir, crashSpecVar+"="+string(data))
	worker.Stderr = os.Stderr
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
	}()
	lines := bufio.NewScanner(out)
	var handle runtime.Handle
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &handle) != nil {
		t.Fatalf("the worker said %q, want a handle: %v", lines.Text(), lines.Err())
	}
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the worker said %q: %v", lines.Text(), lines.Err())
	}
	return handle
}
