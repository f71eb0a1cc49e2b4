// SPDX-License-Identifier: Apache-2.0

package dirstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// childVar names what this binary is to do as a child process instead of testing.
const childVar = "DIRSTORE_TEST_CHILD"

// children are the things that need a process of their own: to be killed, to race with
// other processes, or to see another file system.
var children = map[string]func(ctx context.Context, root string) error{
	"half-a-put": childHalfPut,
	"put-loop":   childPutLoop,
	"race":       childRace,
	"count":      childCount,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childVar); name != "" {
		if err := children[name](context.Background(), os.Args[1]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

type child struct {
	*exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Scanner
}

// start runs a child. It dies with the test at the latest.
func start(t *testing.T, name, root string, configure ...func(*exec.Cmd)) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, root)
	cmd.Env = append(os.Environ(), childVar+"="+name)
	cmd.Stderr = os.Stderr
	for _, c := range configure {
		c(cmd)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("a child process can't be started like this here: %v", err)
	}
	return &child{Cmd: cmd, stdin: stdin, out: bufio.NewScanner(stdout)}
}

// line waits for the child's next line.
func (c *child) line(t *testing.T) string {
	t.Helper()
	if !c.out.Scan() {
		t.Fatalf("the child said nothing: %v", c.out.Err())
	}
	return c.out.Text()
}

// lines waits for the child's end and returns what it said until then.
func (c *child) lines(t *testing.T) []string {
	t.Helper()
	var lines []string
	for c.out.Scan() {
		lines = append(lines, c.out.Text())
	}
	if err := c.Wait(); err != nil {
		t.Errorf("child: %v; it said %q", err, lines)
	}
	return lines
}
