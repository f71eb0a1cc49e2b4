// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/internal/report"
	"github.com/tidemill/tidemill/internal/testenv"
)

// smallDisk mounts a disk of 64 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		why := fmt.Sprintf("a small disk, which can't be mounted here: %v", err)
		if os.Geteuid() == 0 {
			testenv.RequireOrFail(t, why)
		}
		t.Skip("needs " + why)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("something on the disk is still in use: %v", err)
			_ = unix.Unmount(dir, unix.MNT_DETACH)
		}
	})
	return dir
}

// fill leaves no room on a disk, and returns what makes it again.
func fill(t *testing.T, disk string) (undo func()) {
	t.Helper()
	name := filepath.Join(disk, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; { // smaller and smaller pieces, down to the last byte
		if _, err := f.Write(make([]byte, size)); errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// endsIn is less than one call to the queue may take; it comes to a few seconds on a quiet
// machine.
const endsIn = 20 * time.Second

// patience turns a hang into a failure.
const patience = 3 * time.Minute

// process is the command, running.
type process struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr lines
	ended  chan struct{}
}

// lines collects what is written, and passes each line on.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	rest string // what isn't a line yet
	each chan string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	for l.rest += string(p); ; {
		line, rest, ok := strings.Cut(l.rest, "\n")
		if !ok {
			return len(p), nil
		}
		select {
		case l.each <- line:
		default: // nobody waits for so many
		}
		l.rest = rest
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func startRun(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), os.Args[0], args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), runVar+"=1")
	p.stderr.each = make(chan string, 1000)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // exit looks at how it ended
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// await waits for a line of stderr with a text.
func (p *process) await(t *testing.T, text string) {
	t.Helper()
	for timeout := time.After(patience); ; {
		select {
		case line := <-p.stderr.each:
			if strings.Contains(line, text) {
				return
			}
		case <-p.ended:
			t.Fatalf("it ended before it said %q:\n%s", text, &p.stderr)
		case <-timeout:
			t.Fatalf("it doesn't say %q; it says\n%s", text, &p.stderr)
		}
	}
}

// exit waits for the end and checks the exit code.
func (p *process) exit(t *testing.T, code int) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("it doesn't end; it wrote\n%s", &p.stderr)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("exit code %d, want %d; it wrote\n%s", got, code, &p.stderr)
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheDiskRunsFull fills the disk of the data directory while a run goes on. The run
// ends with exit code 1 and says what to do; once there is room, the same command goes on,
// and what was committed before still is.
func TestTheDiskRunsFull(t *testing.T) {
	dir, disk := t.TempDir(), smallDisk(t)
	gate := filepath.Join(dir, "gate")
	writeFiles(t, dir, map[string]string{
		"run.yaml": `
version: 1
name: full
packs: [./pack]
agent:
  name: patient
  command: [sh, -c, '[ "$TIDEMILL_TASK_ID" = first ] || until [ -e "$GATE" ]; do sleep 0.02; done']
  env: {GATE: "${GATE}"}
runtime: {type: subprocess, options: {isolation: none}}
network_policy: full_internet
`,
		"pack/pack.yaml": `
version: 1
kind: dataset
name: full
dataset: {path: tasks.jsonl, id_field: id}
instruction: Wait.
grade: {command: [sh, -c, 'echo 1 >"$TIDEMILL_LOGS_DIR/verifier/reward.txt"']}
`,
		"pack/tasks.jsonl": `{"id": "first"}` + "\n" + `{"id": "second"}` + "\n" + `{"id": "third"}` + "\n",
	})
	data := filepath.Join(disk, "data")
	args := []string{"--data", data, "--run-id", "full", "--slots", "1", "--json", "--var", "GATE=" + gate, filepath.Join(dir, "run.yaml")}

	p := startRun(t, args...)
	p.await(t, `"event":"committed"`)
	makeRoom := fill(t, disk)
	full := time.Now()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.exit(t, app.ExitFailure)
	took := time.Since(full)
	t.Logf("it ended %v after the disk was full", took.Round(time.Millisecond))
	if took > endsIn {
		t.Errorf("it took %v to end, want %v at most; it wrote\n%s", took, endsIn, &p.stderr)
	}
	const hint = "run: hint: make room on the disk of the data directory, and give the same command again; what is committed stays\n"
	if !strings.Contains(p.stderr.String(), hint) {
		t.Errorf("it doesn't ask for room; it wrote\n%s", &p.stderr)
	}

	makeRoom()
	p = startRun(t, args...)
	p.exit(t, app.ExitOK)
	var agg report.Aggregate
	if err := json.Unmarshal(p.stdout.Bytes(), &agg); err != nil {
		t.Fatalf("%v\n%s", err, &p.stdout)
	}
	if !agg.Complete || agg.TotalTrials != 3 || agg.Scored != 3 {
		t.Errorf("complete %t, %d trials, %d scored; want all 3", agg.Complete, agg.TotalTrials, agg.Scored)
	}
	if again := p.stderr.String(); strings.Contains(again, `"task_id":"first"`) || !strings.Contains(again, `"continued":true`) {
		t.Errorf("the trial that was committed ran again, or the run began anew:\n%s", again)
	}
}

// TestTheDiskIsFull: a run doesn't begin.
func TestTheDiskIsFull(t *testing.T) {
	dir, disk := t.TempDir(), smallDisk(t)
	writeFiles(t, dir, map[string]string{
		"run.yaml": `
version: 1
name: full
packs: [./pack]
agent: {name: nop}
runtime: {type: scripted}
network_policy: full_internet
`,
		"pack/pack.yaml": `
version: 1
kind: dataset
name: full
dataset: {path: tasks.jsonl, id_field: id}
instruction: Nothing.
grade: {command: ["write verifier/reward.txt 1"]}
`,
		"pack/tasks.jsonl": `{"id": "first"}` + "\n",
	})
	args := []string{"--data", filepath.Join(disk, "data"), filepath.Join(dir, "run.yaml")}
	makeRoom := fill(t, disk)
	p := startRun(t, args...)
	p.exit(t, app.ExitFailure)
	if !strings.Contains(p.stderr.String(), "no space left") {
		t.Errorf("it doesn't speak of space; it wrote\n%s", &p.stderr)
	}
	makeRoom()
	startRun(t, args...).exit(t, app.ExitOK)
}
