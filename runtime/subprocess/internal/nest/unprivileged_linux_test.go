// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	nobody          = 65534
	unprivilegedVar = "NEST_TEST_UNPRIVILEGED"
)

// TestUnprivileged runs the other tests again as a user who is nobody, in a user
// namespace, where the kernel lets such users have one.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this user has no privileges anyway")
	}
	if testing.Short() {
		t.Skip("it is every test a second time")
	}
	// A directory that nobody can get to, with a copy of this program.
	dir, err := os.MkdirTemp("/var/tmp", "nest-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "nest.test")
	if err := errors.Join(os.Chmod(dir, 0o755), copyFile(program, "/proc/self/exe"), os.Mkdir(filepath.Join(dir, "tmp"), 0o777), os.Chown(filepath.Join(dir, "tmp"), nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	asNobody := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Dir = "/"
		cmd.Env = []string{"PATH=" + testPath, "TMPDIR=" + filepath.Join(dir, "tmp"), "HOME=/nonexistent", unprivilegedVar + "=1"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd
	}
	if out, err := asNobody("-test.run=^TestUserNamespace$", "-test.v").CombinedOutput(); err != nil {
		t.Skipf("this kernel gives nobody no user namespace: %s", out)
	}
	out, err := asNobody("-test.v", "-test.timeout=5m", "-test.skip=^TestUnprivileged$").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "SKIP") || strings.Contains(line, "skip") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// TestUserNamespace is how TestUnprivileged finds out whether there is one to be had.
func TestUserNamespace(t *testing.T) {
	if os.Getenv(unprivilegedVar) == "" {
		t.Skip("only a question of TestUnprivileged's")
	}
	open(t, startWarden(t)).sh(":")
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
