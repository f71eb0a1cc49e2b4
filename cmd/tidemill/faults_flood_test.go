// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/internal/testenv"
)

// fullVar makes floods as large as they are meant to be; make check-full sets it. Else
// they are a tenth of that.
const fullVar = "TIDEMILL_TEST_FULL"

const (
	// floodRSS is what a worker may need at most, in bytes, whatever programs write.
	floodRSS = 200 << 20
	// floodStore is what may become of a flood in the store: what is kept, and as much again
	// for records of it.
	floodStore = 2 * (10<<20 + 1<<20)
)

// TestFaultsFlood has agents that write 5 GB to their stdout, as zeros and as short lines,
// and that leave a million files in the artifacts directory and in the workdir. What is
// stored is bounded and says how much is missing, and the worker doesn't feel it.
func TestFaultsFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("writes gigabytes; left out with -short")
	}
	scale := int64(10)
	if os.Getenv(fullVar) != "" {
		scale = 1
	}
	bytesOut, files := 5<<30/scale, 1000000/scale
	tidemill := plainTidemill(t)
	for _, flood := range []struct {
		name, agent string
		says        map[string]string // by file: what was left out
	}{
		{"zeros", fmt.Sprintf("head -c %d /dev/zero", bytesOut), map[string]string{
			"logs/agent.log": "log full at 10485760 bytes; dropped: stdout ", "metrics.yaml": fmt.Sprintf("agent_output_bytes: %d\n", bytesOut),
		}},
		{"short-lines", fmt.Sprintf("(yes no | head -c %d >&2) & yes | head -c %d; wait", bytesOut/2, bytesOut/2), map[string]string{
			"logs/agent.log": "log full at 10485760 bytes; dropped: stdout ", "metrics.yaml": fmt.Sprintf("agent_output_bytes: %d\n", bytesOut/2*2),
		}},
		{"artifacts", fmt.Sprintf(`cd "$TIDEMILL_LOGS_DIR/artifacts" && seq %d | xargs touch`, files), map[string]string{
			"artifacts.json": fmt.Sprintf(`"skipped_total": %d`, files-1000),
		}},
		{"workdir", fmt.Sprintf(`mkdir out && cd out && seq %d | xargs touch`, files), map[string]string{
			"artifacts.json": fmt.Sprintf(`"skipped_total": %d`, files-1000),
		}},
	} {
		t.Run(flood.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			data := filepath.Join(dir, "data")
			writeFlood(t, dir, flood.agent)
			// Without the race detector, which needs memory for every byte of the program's.
			cmd := exec.CommandContext(t.Context(), tidemill, "run", "--data", data, "--run-id", "flood", filepath.Join(dir, "run.yaml"))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			peak := watchPeak(cmd.Process.Pid)
			err := cmd.Wait()
			if err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			if rss := peak(); rss == 0 || rss > floodRSS {
				t.Errorf("the worker needed %d MiB of memory; want at most %d", rss>>20, floodRSS>>20)
			} else {
				t.Logf("the worker needed %d MiB of memory", rss>>20)
			}
			store, err := dirstore.Open(data, dirstore.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			r := readResults(t, store, bundle.Keys{Run: "flood"})["one"]
			if !r.Outcome.Scored || r.Outcome.TerminationReason != bundle.ReasonAgentDone {
				t.Errorf("outcome %+v", r.Outcome)
			}
			index, err := bundle.Verify(t.Context(), store, r.Path)
			if err != nil {
				t.Fatal(err)
			}
			var size int64
			for _, e := range index.Files {
				size += e.Size
			}
			if size > floodStore || len(index.Files) > 1100 {
				t.Errorf("the bundle has %d files with %d bytes; want at most 1100 and %d", len(index.Files), size, floodStore)
			}
			for file, text := range flood.says {
				body, err := bundle.ReadObject(t.Context(), store, r.Path+file, 20<<20)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Contains(body, []byte(text)) {
					t.Errorf("%s doesn't say %q; it ends with\n%s", file, text, body[max(0, len(body)-300):])
				}
			}
			testenv.NoLeaks(t, data)
		})
	}
}

func writeFlood(t *testing.T, dir, agent string) {
	t.Helper()
	for name, text := range map[string]string{
		"run.yaml": `
version: 1
name: flood
packs: [./pack]
agent: {name: flood, command: [sh, agent/run.sh], files: ./agent}
runtime: {type: subprocess}
network_policy: full_internet
capture: {artifacts: [out]}
`,
		"agent/run.sh": agent + "\n",
		"pack/pack.yaml": `
version: 1
kind: dataset
name: flood
dataset: {path: tasks.jsonl, id_field: id}
instruction: Flood.
grade: {command: [sh, -c, 'echo 1 >"$TIDEMILL_LOGS_DIR/verifier/reward.txt"']}
`,
		"pack/tasks.jsonl": `{"id": "one"}` + "\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// plainTidemill builds the command as people do.
func plainTidemill(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "tidemill")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/tidemill")
	cmd.Dir = testenv.Root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build ./cmd/tidemill: %v\n%s", err, out)
	}
	return binary
}

// watchPeak reads the largest memory that a process ever had, over and over: the kernel
// knows it only as long as the process lives, and no event tells that it will end. The
// function that it returns ends that, and returns bytes. (What wait tells has what the
// parent had in it.)
func watchPeak(pid int) func() int64 {
	stop, result := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		var peak int64
		for {
			select {
			case <-stop:
				result <- peak
				return
			case <-tick.C:
			}
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			for line := range strings.Lines(string(status)) {
				if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
					kib, _ := strconv.ParseInt(f[1], 10, 64)
					peak = max(peak, kib<<10)
				}
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-result
	}
}
