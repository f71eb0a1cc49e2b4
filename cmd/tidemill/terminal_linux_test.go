// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/internal/testenv"
)

// pty opens a terminal of 100 columns: what is written to screen can be read from person.
func pty(t *testing.T) (person, screen *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		testenv.RequireOrFail(t, "pseudo terminals: "+err.Error())
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if screen, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		testenv.RequireOrFail(t, "pseudo terminals: "+err.Error())
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}); err != nil {
		t.Fatal(err)
	}
	return person, screen
}

// onTerminal runs the command on a terminal and returns all that it wrote there.
func onTerminal(t *testing.T, code int, env []string, args ...string) string {
	t.Helper()
	person, screen := pty(t)
	cmd := exec.CommandContext(t.Context(), "tidemill", args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), append([]string{"TERM=xterm-256color", "NO_COLOR="}, env...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	screen.Close() // the command has it; when it ends, reading ends
	text, err := io.ReadAll(person)
	if err != nil && !errors.Is(err, syscall.EIO) { // the other end was closed
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d; want %d; on the terminal:\n%s", got, code, text)
	}
	return string(text)
}

func TestOnATerminal(t *testing.T) {
	quickstart := filepath.Join(testenv.Root(t), "examples", "quickstart", "run.yaml")
	const erase, green, red = "\r\x1b[2K", "\x1b[32m", "\x1b[31m"

	t.Run("a bar and colours", func(t *testing.T) {
		t.Parallel()
		text := onTerminal(t, 0, nil, "run", "--run-id", "mine", quickstart)
		for _, want := range []string{
			"run mine: 8 tasks, 24 trials", erase + "█", "/24  ", green + "passed ", red + "failed ",
			green + "count-words", "overall  n 24",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in:\n%q", want, text)
			}
		}
		if strings.Contains(text, "0/0") || strings.Contains(text, `"event"`) {
			t.Errorf("JSON lines or an empty bar for a person:\n%s", text)
		}
		// The bar is gone before the table comes.
		before, _, _ := strings.Cut(text, "run mine  agent ")
		if !strings.HasSuffix(before, erase) {
			t.Errorf("before the table the screen ends with %q", before[max(0, len(before)-40):])
		}
	})
	t.Run("no colours for who wants none", func(t *testing.T) {
		t.Parallel()
		text := onTerminal(t, 0, []string{"NO_COLOR=1"}, "run", quickstart)
		if strings.Contains(text, green) || strings.Contains(text, red) {
			t.Errorf("colours in %q", text)
		}
	})
	t.Run("errors", func(t *testing.T) {
		t.Parallel()
		text := onTerminal(t, 2, nil, "rum")
		if want := red + "tidemill:\x1b[0m unknown command \"rum\""; !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	})
}

// Watching draws over what was drawn, and a log has colours and nothing that the agent
// chose.
func TestLookingOnATerminal(t *testing.T) {
	quickstart := filepath.Join(testenv.Root(t), "examples", "quickstart", "run.yaml")
	data := filepath.Join(t.TempDir(), "results")
	if out, err := exec.CommandContext(t.Context(), "tidemill", "run", "--data", data, "--run-id", "mine", quickstart).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"status --watch": {
			[]string{"status", "--watch", "--data", data},
			[]string{"\r\x1b[2Krun       mine", "\r\x1b[2Kstate     complete", "████ 24/24  ", "\x1b[32mpassed 12\x1b[0m", "\x1b[J"},
		},
		"ls": {
			[]string{"ls", "mine", "--data", data},
			[]string{"\x1b[32mpassed  \x1b[0m", "\x1b[31mfailed  \x1b[0m"},
		},
		"logs": {
			[]string{"logs", "fizzbuzz#0", "--data", data},
			[]string{"\x1b[1magent:\x1b[0m", "\x1b[2m    0."},
		},
		"debug": {
			[]string{"debug", quickstart, "fizzbuzz"},
			[]string{"\x1b[1magent:\x1b[0m", "teardown  ", "tidemill-debug/runs/quickstart-"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := onTerminal(t, 0, nil, c.args...)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in:\n%q", want, text)
				}
			}
		})
	}
}
