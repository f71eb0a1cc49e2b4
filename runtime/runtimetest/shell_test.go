// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// run runs a program of the suite on this machine, in its own process group, and
// kills at the end what it left behind.
func run(t *testing.T, dir, stdin string, argv []string) (stdout, stderr string, state *os.ProcessState) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "VALUE=a b\n'c'")
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("%q: %v", argv, err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.ProcessState.Pid(), syscall.SIGKILL) })
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", argv, err)
	}
	return out.String(), errs.String(), cmd.ProcessState
}

func TestShell(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh on this machine")
	}
	for what, test := range map[string]struct {
		steps  []Step
		stdin  string
		stdout string
		stderr string
		code   int
	}{
		"nothing":       {},
		"bytes":         {steps: []Step{Out(allBytes()), Err("\xff%s\\"), Out("")}, stdout: allBytes(), stderr: "\xff%s\\"},
		"a code":        {steps: []Step{Exit(127), Out("never")}, code: 127},
		"stdin":         {steps: []Step{Cat(), Out("!")}, stdin: allBytes(), stdout: allBytes() + "!"},
		"a variable":    {steps: []Step{Echo("VALUE"), Echo("NO_SUCH")}, stdout: "a b\n'c'\n\n"},
		"a flood":       {steps: []Step{Flood(128)}, stdout: strings.Repeat("\x00", 128<<10), stderr: strings.Repeat("\x00", 128<<10)},
		"files":         {steps: []Step{Mkdir("it's/d"), Write("it's/d/f", allBytes()), Read("it's/d/f")}, stdout: allBytes()},
		"a rename":      {steps: []Step{Write("a", "x"), Rename("a", "b c"), Read("b c")}, stdout: "x"},
		"a link":        {steps: []Step{Write("a", "x"), Symlink("a", "l"), Read("l")}, stdout: "x"},
		"a child":       {steps: []Step{Child("pid"), Alive("pid")}, stdout: "alive\n"},
		"a daemon":      {steps: []Step{Daemon("pid"), Alive("pid")}, stdout: "alive\n"},
		"a dead child":  {steps: []Step{Write("pid", "999999999\n"), Alive("pid")}, stdout: "dead\n"},
		"an empty file": {steps: []Step{Write("e", ""), Read("e")}},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			stdout, stderr, state := run(t, dir, test.stdin, Shell{}.Program(test.steps...))
			killLeft(t, dir)
			if stdout != test.stdout || state.ExitCode() != test.code || stderr != test.stderr {
				t.Errorf("exit %v, stdout %.80q, stderr %.80q; want %d, %.80q, %.80q", state, stdout, stderr, test.code, test.stdout, test.stderr)
			}
		})
	}

	t.Run("a step that fails", func(t *testing.T) {
		if stdout, _, state := run(t, t.TempDir(), "", Shell{}.Program(Read("missing"), Out("never"))); state.Success() || stdout != "" {
			t.Errorf("exit %v, stdout %q; want it to end there", state, stdout)
		}
	})
	t.Run("arguments", func(t *testing.T) {
		args := []string{"a b", "", "$(id)", "-n", "it's", "\n"}
		stdout, _, _ := run(t, t.TempDir(), "", Shell{}.Args(args...))
		if diff := cmp.Diff(strings.Join(args, "\x00")+"\x00", stdout); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a signal", func(t *testing.T) {
		_, _, state := run(t, t.TempDir(), "", Shell{}.Program(Die(9)))
		if ws, ok := state.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
			t.Errorf("%v, want a death by SIGKILL", state)
		}
	})
	t.Run("a fifo and a place", func(t *testing.T) {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		stdout, _, _ := run(t, dir, "", Shell{}.Program(Fifo("f"), Pwd()))
		info, err := os.Lstat(filepath.Join(dir, "f"))
		if err != nil || info.Mode()&os.ModeNamedPipe == 0 || stdout != dir+"\n" {
			t.Errorf("%v, error %v, in %q", info, err, stdout)
		}
	})
}

// killLeft ends the daemon whose id a program wrote to a file.
func killLeft(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return
	}
	pid := 0
	for _, c := range strings.TrimSpace(string(text)) {
		pid = pid*10 + int(c-'0')
	}
	if pid > 1 && pid != 999999999 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestHostProcessesLeavesThisOneOut(t *testing.T) {
	mark := "a-mark-that-only-the-child-has"
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "echo ready; read -r _")
	cmd.Env = append(os.Environ(), "MARK="+mark)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("there is no sh on this machine: %v", err)
	}
	if _, err := stdout.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if found := HostProcesses(mark); len(found) != 1 || !strings.Contains(found[0], "sh -c") {
		t.Errorf("while it runs: %q, want the one sh", found)
	}
	_ = stdin.Close()
	_ = cmd.Wait() // its exit code is that of read at the end of its input
	if found := HostProcesses(mark); len(found) != 0 {
		t.Errorf("after its end: %q", found)
	}
}
