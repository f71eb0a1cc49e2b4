// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

const (
	stoppedRootVar = "SUBPROCESS_TEST_STOPPED_ROOT"
	// stoppedTimeout is the agent's time. The worker has to be stopped within it.
	stoppedTimeout = 2 * time.Second
)

// stoppedWorker runs one program that ends when its stdin does, within a timeout, and
// prints how that came out.
func stoppedWorker(root string) {
	rt, err := New(Config{Root: root, Store: testStore, Isolation: None})
	if err != nil {
		fatal(err)
	}
	env, err := rt.Prepare(context.Background(), runtime.RunSpec{})
	if err != nil {
		fatal(err)
	}
	sb, err := env.Open(context.Background(), testSpec("stopped"))
	if err != nil {
		fatal(err)
	}
	exit, err := sb.Exec(context.Background(), runtime.Command{
		Stdin: os.Stdin, Stdout: os.Stdout, Timeout: stoppedTimeout,
		Argv: []string{"sh", "-c", "echo $$; read line; exit 7"},
	})
	if err != nil {
		fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(exit); err != nil {
		fatal(err)
	}
	if err := sb.Close(context.Background()); err != nil {
		fatal(err)
	}
	if err := rt.Close(); err != nil {
		fatal(err)
	}
	os.Exit(0)
}

// A worker that is stopped for longer than its agent's time sees the timer and the end of
// the agent at once when it goes on. The agent ended in time, and that is what counts.
// Which of two things that have both happened is seen first is chance, so there are some.
func TestStoppedWorkerCallsNobodyTimedOut(t *testing.T) {
	for range 6 {
		t.Run("worker", func(t *testing.T) {
			t.Parallel()
			stopBeyondTimeout(t)
		})
	}
}

func stopBeyondTimeout(t *testing.T) {
	t.Helper()
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), stoppedRootVar+"="+t.TempDir())
	worker.Stderr = os.Stderr
	in, err := worker.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
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
	if !lines.Scan() {
		t.Fatalf("the agent says nothing: %v", lines.Err())
	}
	agent := strings.TrimSpace(lines.Text())
	began := time.Now() // the timer began a little earlier
	if err := worker.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "\n"); err != nil { // now the agent ends, and nobody sees it
		t.Fatal(err)
	}
	for alivePID(t, agent) {
		time.Sleep(time.Millisecond) // it isn't our child, and its parent is stopped: nobody tells
	}
	if time.Since(began) > stoppedTimeout/2 {
		t.Skip("this machine is too busy: the agent itself was late")
	}
	time.Sleep(stoppedTimeout - time.Since(began) + 2*late) // the stop has to be longer than the timeout
	if err := worker.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	var exit runtime.Exit
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &exit) != nil {
		t.Fatalf("the worker said %q, want an exit: %v", lines.Text(), lines.Err())
	}
	if exit.TimedOut || exit.Code != 7 {
		t.Errorf("exit %+v of an agent that ended in time, want code 7 and no time-out", exit)
	}
	if err := worker.Wait(); err != nil {
		t.Errorf("worker: %v", err)
	}
}
