// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// stubborn leaves everything behind that a hostile agent could, says so, and goes on.
const stubborn = `trap "" TERM HUP INT
sleep 1000 & setsid sleep 1000 & setsid setsid nohup sleep 1000 &
(env -i setsid sh -c 'trap "" TERM; while :; do sleep 1000; done' &)
(sh -c 'sleep 1000 & exit 0' &)
echo ready
while :; do sleep 1000; done`

// timeoutAfterReady runs a script with a timeout that is long enough to print "ready".
func timeoutAfterReady(t *testing.T, sb *Sandbox, script string) runtime.Exit {
	t.Helper()
	for timeout := time.Second; ; timeout *= 2 {
		exit, out := try(t, sb, script, func(c *runtime.Command) { c.Timeout = timeout })
		if !exit.TimedOut || exit.OK() {
			t.Fatalf("exit %+v, want one that is out of time: %s", exit, out)
		}
		if strings.Contains(out, "ready\n") || timeout > patience/2 {
			return exit
		}
	}
}

func TestTimeoutKillsEverything(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t))
	sh(t, sb, `echo kept > file; setsid sleep 1000 >/dev/null 2>&1 &`)
	exit := timeoutAfterReady(t, sb, stubborn)
	if exit.Code != killed || exit.Signal != "SIGKILL" {
		t.Errorf("exit %+v, want 137 by SIGKILL", exit)
	}
	l.onlyPID1(t, sb)
	if got := sh(t, sb, "cat file"); got != "kept\n" {
		t.Errorf("the file reads %q", got)
	}
	if n, _ := sb.restarting(); n != 0 {
		t.Errorf("the container was started again %d times; the tool inside should have been enough", n)
	}
}

func TestTimeoutOfAnotherUser(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t), func(s *runtime.Spec) {
		s.Users = map[runtime.Phase]string{runtime.Setup: "4321"} // not in /etc/passwd
	})
	if got := sh(t, sb, "id -u"); got != "4321\n" {
		t.Errorf("the user is %q", got)
	}
	timeoutAfterReady(t, sb, stubborn)
	l.onlyPID1(t, sb)
}

// TestForkBomb: with no room for one more process nothing can be run inside, so the
// container is stopped and started.
func TestForkBomb(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t), func(s *runtime.Spec) { s.Resources.Pids = 64 })
	sh(t, sb, "echo kept > file")
	timeoutAfterReady(t, sb, `(f() { while :; do f & done; }; f) >/dev/null 2>&1 & echo ready; exec sleep 1000`)
	l.onlyPID1(t, sb)
	if got := sh(t, sb, "cat file"); got != "kept\n" {
		t.Errorf("after a fork bomb the file reads %q", got)
	}
	if err := sb.EndProcesses(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestForkBombInTheBackground is what EndProcesses finds after an agent that ended well.
func TestForkBombInTheBackground(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t), func(s *runtime.Spec) {
		s.Resources = runtime.Resources{Pids: 64, Disk: 16 << 20, Memory: 256 << 20}
	})
	sh(t, sb, `echo kept > file; mkdir -p d; chown 1000 d; (f() { while :; do f & done; }; f) >/dev/null 2>&1 &`)
	if err := sb.EndProcesses(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.onlyPID1(t, sb)
	// The disk in memory was saved over the stop.
	if got := sh(t, sb, "cat file; stat -c %u d"); got != "kept\n1000\n" {
		t.Errorf("after it the workdir has %q", got)
	}
}

// blocked is a command that runs until it is cancelled.
func blocked(t *testing.T, sb *Sandbox, script string, edit ...func(*runtime.Command)) (cancel context.CancelCauseFunc, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	out, in := io.Pipe()
	done := make(chan error, 1)
	cmd := runtime.Command{Argv: []string{"sh", "-c", script}, Stdout: in}
	for _, e := range edit {
		e(&cmd)
	}
	go func() {
		exit, err := sb.Exec(ctx, cmd)
		if err == nil && !exit.OK() {
			err = errors.New("exit code")
		}
		_ = in.Close()
		done <- err
	}()
	buf := make([]byte, 6)
	if _, err := io.ReadFull(out, buf); err != nil || string(buf) != "ready\n" {
		t.Fatalf("the command printed %q: %v", buf, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return cancel, done
}

// newPipe is an input that the test's end closes.
func newPipe(t *testing.T) (*io.PipeReader, *io.PipeWriter) {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	return r, w
}

// TestBesideAnother: who looks around in a sandbox and goes away ends what he started and
// nothing else.
func TestBesideAnother(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t))
	stopAgent, agent := blocked(t, sb, "echo ready; while :; do sleep 1; done")
	enough := errors.New("seen enough")
	stopLook, look := blocked(t, sb, "sleep 4321 & echo ready; sleep 4321")
	stopLook(enough)
	if err := <-look; !errors.Is(err, enough) {
		t.Errorf("who looked around: %v", err)
	}
	if list := strings.Join(l.top(t, sb), "\n"); strings.Contains(list, "4321") || !strings.Contains(list, "while") {
		t.Errorf("docker top has %s; want the agent's and not the other's", list)
	}
	select {
	case err := <-agent:
		t.Fatalf("the agent ended: %v", err)
	default:
	}
	// A timeout beside another ends its own, here where it can be told apart.
	exit, _ := try(t, sb, "sleep 5432 & sleep 5432", func(c *runtime.Command) { c.Timeout = time.Second })
	if list := strings.Join(l.top(t, sb), "\n"); !exit.TimedOut || strings.Contains(list, "5432") || !strings.Contains(list, "while") {
		t.Errorf("exit %+v, docker top has %s; want the agent's and not the other's", exit, list)
	}
	stopAgent(enough)
	if err := <-agent; !errors.Is(err, enough) {
		t.Errorf("the agent: %v", err)
	}
	l.onlyPID1(t, sb)
}

func TestFamily(t *testing.T) {
	list := []process{
		{1, 0, 1}, {10, 9, 10}, {11, 10, 10}, {12, 11, 12}, {13, 1, 10}, {14, 13, 14}, {20, 9, 20}, {21, 20, 20}, {22, 1, 22},
	}
	got := family(list, 10)
	want := []int{10, 11, 12, 13, 14}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
