// SPDX-License-Identifier: Apache-2.0

package boxtool_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

func nobody() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

// box is a PID namespace whose first process is the tool.
type box struct {
	tool
	init *exec.Cmd
}

func startBox(t *testing.T, b tool) box {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a PID namespace needs root")
	}
	init := b.command(t)
	init.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	// The parent's death signal is that of the thread that starts it.
	goruntime.LockOSThread()
	t.Cleanup(goruntime.UnlockOSThread)
	must(t, init.Start())
	t.Cleanup(func() {
		_ = init.Process.Kill()
		_ = init.Wait()
	})
	x := box{tool: b, init: init}
	x.await(t, "PID 1 ignores SIGCHLD", func() bool {
		ignored := statusOf(fmt.Sprint(init.Process.Pid))["SigIgn"]
		return ignored != "" && ignored[len(ignored)-5] == '1' // bit 16: signal 17
	})
	return x
}

// inside starts a command in the namespace.
func (x box) inside(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/pid", x.init.Process.Pid))
	must(t, err)
	defer func() { _ = ns.Close() }()
	started := make(chan error)
	go func() {
		goruntime.LockOSThread() // and never unlock: the thread is spoilt
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWPID); err != nil {
			started <- err
			return
		}
		started <- cmd.Start()
	}()
	must(t, <-started)
}

// shell runs a script in the namespace, waits for it to print "ready", and reaps it.
func (x box) shell(t *testing.T, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	out, in, err := os.Pipe()
	must(t, err)
	cmd.Stdout = in
	x.inside(t, cmd)
	must(t, in.Close())
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Fatalf("the script said %q: %v", line, err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = x.init.Process.Kill() // ends whatever the test left in there
		<-done
		_ = out.Close()
	})
}

// kill runs the tool's mode in the namespace.
func (x box) kill(t *testing.T, attr *syscall.SysProcAttr) syscall.Errno {
	t.Helper()
	cmd := x.command(t, boxtool.Kill)
	cmd.SysProcAttr = attr
	x.inside(t, cmd)
	_ = cmd.Wait()
	if !cmd.ProcessState.Exited() {
		t.Fatalf("kill: %v", cmd.ProcessState)
	}
	return syscall.Errno(cmd.ProcessState.ExitCode())
}

// processes lists "pid state" of all in the namespace, zombies included, as its own
// members would see them.
func (x box) processes(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must(t, err)
	parents := map[string]string{}
	nested := map[string]string{}
	for _, d := range dirs {
		s := statusOf(filepath.Base(d))
		pids := strings.Fields(s["NSpid"])
		parents[filepath.Base(d)] = s["PPid"]
		if len(pids) > 1 {
			nested[filepath.Base(d)] = pids[len(pids)-1] + " " + s["State"][:1]
		}
	}
	// The namespace's members are PID 1, what was started into it by this process, and
	// all descendants of those.
	self := fmt.Sprint(os.Getpid())
	var in []string
	for pid, shown := range nested {
		at := pid
		for at != "" && at != self {
			at = parents[at]
		}
		if at == self {
			in = append(in, shown)
		}
	}
	slices.Sort(in)
	return in
}

func statusOf(pid string) map[string]string {
	b, _ := os.ReadFile("/proc/" + pid + "/status")
	s := map[string]string{}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		s[key] = strings.TrimSpace(value)
	}
	return s
}

func (x box) await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) { // /proc tells nobody
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

func TestPID1ReapsOrphansAndIgnoresSignals(t *testing.T) {
	eachTool(t, func(t *testing.T, b tool) {
		x := startBox(t, b)
		for range 10 {
			x.shell(t, `(sh -c 'sleep 0.01; exit 3' &) ; (setsid true &) ; echo ready`)
		}
		x.await(t, "only PID 1 is left, and it is asleep", func() bool {
			return slices.Equal(x.processes(t), []string{"1 S"})
		})
		// From inside; from outside SIGKILL would do.
		x.shell(t, `kill -TERM 1; kill -INT 1; kill -HUP 1; kill -CHLD 1; kill -USR1 1; kill -KILL 1; kill -STOP 1; kill -CONT 1; echo ready`)
		x.await(t, "only PID 1 is left", func() bool { return slices.Equal(x.processes(t), []string{"1 S"}) })
	})
}

func TestKill(t *testing.T) {
	scripts := map[string]string{
		"nobody":                       `echo ready`,
		"a child that ignores signals": `trap "" TERM HUP INT; echo ready; sleep 1000; sleep 1000`,
		"sessions of their own": `for i in 1 2 3 4 5 6; do setsid sh -c 'trap "" TERM HUP; sleep 1000 & sleep 1000; sleep 1000' & done
			sleep 0.1; echo ready`,
		"orphans and zombies": `sh -c 'sleep 1000 & (sleep 0.01 &) ; exec setsid sleep 1000' & sh -c 'true & exec sleep 1000' & sleep 0.1; echo ready`,
		"stopped ones":        `sh -c 'kill -STOP $$' & setsid sh -c 'kill -STOP $$' & sleep 0.1; echo ready`,
		"forkers":             `for i in 1 2 3 4; do setsid sh -c 'while :; do (:); (sleep 1000 &) ; sleep 0.02; done' & done; sleep 0.1; echo ready; wait`,
	}
	eachTool(t, func(t *testing.T, b tool) {
		for name, script := range scripts {
			t.Run(name, func(t *testing.T) {
				x := startBox(t, b)
				x.shell(t, script)
				if code := x.kill(t, nil); code != 0 {
					t.Errorf("exit code %d (%v); left %v", int(code), code, x.processes(t))
				}
				if left := x.processes(t); !slices.Equal(left, []string{"1 S"}) {
					t.Errorf("left: %v, want only PID 1", left)
				}
			})
		}
	})
}

func TestKillSaysThatSomebodyIsLeft(t *testing.T) {
	eachTool(t, func(t *testing.T, b tool) {
		x := startBox(t, b)
		x.shell(t, `sleep 1000 & echo ready; wait`)
		if code := x.kill(t, nobody()); code != syscall.EAGAIN {
			t.Errorf("another user's: exit code %d (%v), want EAGAIN", int(code), code)
		}
		if code := x.kill(t, nil); code != 0 {
			t.Errorf("as root: exit code %d (%v)", int(code), code)
		}
		// Its parent is outside and doesn't ask for it: a zombie that stays.
		zombie := exec.CommandContext(t.Context(), "true")
		x.inside(t, zombie)
		x.await(t, "a zombie", func() bool { return len(x.processes(t)) == 2 })
		if code := x.kill(t, nil); code != syscall.EAGAIN {
			t.Errorf("a zombie: exit code %d (%v), want EAGAIN", int(code), code)
		}
		_ = zombie.Wait()
		if code := x.kill(t, nil); code != 0 {
			t.Errorf("after it was reaped: exit code %d (%v)", int(code), code)
		}
	})
}
