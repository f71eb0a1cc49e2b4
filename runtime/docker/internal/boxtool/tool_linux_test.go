// SPDX-License-Identifier: Apache-2.0

package boxtool_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

var arches = []string{"amd64", "arm64"}

// tool is the executable for an architecture, on disk.
type tool struct {
	prefix []string // an emulator, for another architecture than this machine's
	path   string
}

// eachTool runs a test with the tool for each architecture.
func eachTool(t *testing.T, f func(t *testing.T, box tool)) {
	t.Helper()
	for _, arch := range arches {
		t.Run(arch, func(t *testing.T) {
			var prefix []string
			if arch != goruntime.GOARCH {
				name := map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}[arch]
				qemu, err := exec.LookPath(name)
				if err != nil {
					t.Skipf("this machine is not %s, and there is no %s (Debian has it in qemu-user-static)", arch, name)
				}
				prefix = []string{qemu}
			}
			elf, err := boxtool.ELF(arch)
			if err != nil {
				t.Fatal(err)
			}
			// Other users run it too: t.TempDir is for the test's user only.
			dir, err := os.MkdirTemp("", "boxtool-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "boxtool")
			if err := os.WriteFile(path, elf, 0o755); err != nil {
				t.Fatal(err)
			}
			f(t, tool{prefix: prefix, path: path})
		})
	}
}

func (b tool) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	argv := slices.Concat(b.prefix, []string{b.path}, args)
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = []string{}
	return cmd
}

// run returns the exit code and what was written.
func (b tool) run(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	return finish(t, b.command(t, args...))
}

func finish(t *testing.T, cmd *exec.Cmd) (code int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	if stderr.Len() > 0 || !cmd.ProcessState.Exited() {
		t.Fatalf("%s: %v: %s", cmd, err, stderr.Bytes())
	}
	return cmd.ProcessState.ExitCode(), stdout.String()
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	arg, err := boxtool.Socket{}.Arg()
	if err != nil {
		t.Fatal(err)
	}
	eachTool(t, func(t *testing.T, box tool) {
		for _, args := range [][]string{
			{""},
			{"kil"},
			{"killl"},
			{"KILL"},
			{"-h"},
			{"remove"},
			{"remove", "relative"},
			{"remove", ""},
			{"remove", "/"},
			{"remove", "//"},
			{"remove", "/tmp/.."},
			{"remove", "/tmp/."},
			{"remove", "/tmp/../tmp/not-there"},
			{"remove", "/tmp//./x"},
			{"listen"},
			{"listen", arg, arg},
			{"listen", arg[1:]},
			{"listen", arg[2:]},
			{"probe"},
			{"probe", ""},
			{"probe", arg + string(bytes.Repeat([]byte("00"), boxtool.MaxRequest+1))},
		} {
			if code, _ := box.run(t, args...); code != boxtool.Usage {
				t.Errorf("%q: exit code %d, want %d", args, code, boxtool.Usage)
			}
		}
	})
}
