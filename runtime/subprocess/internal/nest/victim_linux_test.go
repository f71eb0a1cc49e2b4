// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const victimVar = "NEST_TEST_VICTIM"

// victim is a worker that has nests open when it is killed.
func victim() {
	root := os.Getenv(victimVar)
	if root == "" {
		return
	}
	err := func() error {
		warden, err := Start(context.Background(), Config{})
		if err != nil {
			return err
		}
		fmt.Println(warden.cmd.Process.Pid, strings.Join(warden.Groups("victim"), " "))
		for i := range 3 {
			name := fmt.Sprintf("box%d", i)
			work, tmp := root+"/"+name, root+"/"+name+"@side/in/tmp"
			p := place{root: root, work: work, side: root + "/" + name + "@side/in", tmp: tmp}
			if err := os.MkdirAll(tmp, 0o755); err != nil {
				return err
			}
			if err := os.MkdirAll(work, 0o755); err != nil {
				return err
			}
			spec := p.spec("victim")
			if i == 0 && warden.hello.NoMemory == "" && warden.hello.NoPids == "" {
				spec.Memory, spec.Pids = 256<<20, 100
			}
			n, err := warden.Open(context.Background(), spec)
			if err != nil {
				return err
			}
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			proc, err := n.Start(Command{
				Argv: []string{"sh", "-c", daemons}, Path: testPath, Dir: work,
				Env: []string{"PATH=" + testPath, mark + "=victim"}, Files: fdsOf(null, os.Stdout, os.Stderr),
			})
			if err != nil {
				return err
			}
			if s, err := proc.Wait(); err != nil || s.Wait != 0 {
				return fmt.Errorf("status %+v, error %w", s, err)
			}
		}
		return nil
	}()
	if err != nil {
		fmt.Println("victim:", err)
		os.Exit(1)
	}
	select {}
}

func TestWorkerKilled(t *testing.T) {
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), victimVar+"="+testRoot(t))
	worker.Stderr = os.Stderr
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	head := strings.Fields(lines.Text())
	for range 3 {
		if !lines.Scan() || lines.Text() != "ready" {
			t.Errorf("the worker says %q", lines.Text())
			break
		}
	}
	if !t.Failed() {
		awaitMarked(t, "victim", 18)
	}
	_ = worker.Process.Kill()
	_ = worker.Wait()
	awaitNobody(t, "victim")
	if t.Failed() {
		return
	}
	// The warden goes last: it removes the control groups.
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // nobody tells
		state, err := os.ReadFile("/proc/" + head[0] + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the warden is alive")
		}
	}
	for _, dir := range head[1:] {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}
