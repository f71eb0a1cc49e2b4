// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

const (
	crashRootVar = "SUBPROCESS_TEST_CRASH_ROOT"
	crashSpecVar = "SUBPROCESS_TEST_CRASH_SPEC"
	crashIsoVar  = "SUBPROCESS_TEST_CRASH_ISOLATION"
)

// crashingWorker opens a sandbox, prints its handle, starts what a hostile agent would
// start, says so, and waits to be killed.
func crashingWorker(root, specJSON string) {
	var spec runtime.Spec
	if err := json.Unmarshal([]byte(specJSON), &spec); err != nil {
		fatal(err)
	}
	rt, err := New(Config{Root: root, Store: testStore, Isolation: Isolation(os.Getenv(crashIsoVar))})
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
echo precious >abandoned; mkdir ro; echo x >ro/x; chmod 500 ro
sleep 1000 >/dev/null 2>&1 & echo $! >pids
setsid sleep 1000 >/dev/null 2>&1 & echo $! >>pids
env -i setsid sh -c 'trap "" TERM HUP; exec sleep 1000' >/dev/null 2>&1 & echo $! >>pids
echo $$ >>pids
echo ready
exec sleep 1000`}})
	fatal("the program ended:", exit, err)
}

// crash runs a worker on the root and kills it while a sandbox of its is open. It
// returns the sandbox's handle and the ids of its processes, the command itself last.
func crash(t *testing.T, root string, spec runtime.Spec) (runtime.Handle, []string) {
	t.Helper()
	return crashIn(t, None, root, spec)
}

func crashIn(t *testing.T, isolation Isolation, root string, spec runtime.Spec) (runtime.Handle, []string) {
	t.Helper()
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), crashRootVar+"="+root, crashSpecVar+"="+string(data), crashIsoVar+"="+string(isolation))
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
	return handle, strings.Fields(mustRead(t, root+"/"+spec.Name+"/pids"))
}

func TestOpenTakesOverFromTheDead(t *testing.T) {
	root := t.TempDir()
	const name = "0123456789abcdef0123456789abcdef"
	handle, pids := crash(t, root, testSpec(name))
	for _, pid := range pids[:3] {
		if !alivePID(t, pid) {
			t.Fatalf("process %s died with the worker: nothing is left to take over", pid)
		}
	}
	rt := newRuntime(t, Config{Root: root})
	found, err := rt.List(t.Context())
	if err != nil || len(found) != 1 || found[0].Live || found[0].Handle != handle {
		t.Fatalf("List: %+v, %v; want the dead worker's sandbox, not live", found, err)
	}

	sb := open(t, rt, name)
	if diff := cmp.Diff([]string{name, name + sideSuffix}, entriesOf(t, root)); diff != "" {
		t.Errorf("below the root (-want +got):\n%s", diff)
	}
	for _, pid := range pids {
		if alivePID(t, pid) {
			t.Errorf("process %s of the dead worker's sandbox is alive", pid)
		}
	}
	if got := sh(t, sb, "ls"); got != "" {
		t.Errorf("the new sandbox has its predecessor's files: %q", got)
	}
	// The old handle names nothing any more.
	if err := rt.Destroy(t.Context(), handle); err != nil {
		t.Error(err)
	}
	if err := sb.Alive(t.Context()); err != nil {
		t.Errorf("after Destroy with the predecessor's handle: %v", err)
	}
}

func TestDestroyWhatTheDeadLeft(t *testing.T) {
	root := t.TempDir()
	_, pids := crash(t, root, testSpec("swept"))
	other := newRuntime(t, Config{Root: root, Store: "another-store"})
	rt := newRuntime(t, Config{Root: root})
	found, err := rt.List(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatalf("List: %+v, %v", found, err)
	}

	// Another store neither sees nor destroys nor takes it over.
	if theirs, err := other.List(t.Context()); err != nil || len(theirs) != 0 {
		t.Errorf("another store lists %+v, %v", theirs, err)
	}
	if err := other.Destroy(t.Context(), found[0].Handle); err == nil {
		t.Error("another store destroyed it")
	}
	_, err = tryOpen(t, other, testSpec("swept"))
	wantConflict(t, err)
	if got := mustRead(t, root+"/swept/abandoned"); got != "precious\n" {
		t.Errorf("another store changed it: %q", got)
	}

	if err := rt.Destroy(t.Context(), found[0].Handle); err != nil {
		t.Fatal(err)
	}
	if left := entriesOf(t, root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, pid := range pids {
		if alivePID(t, pid) {
			t.Errorf("process %s is alive", pid)
		}
	}
}
