// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/internal/testenv"
)

// TestFaultsInitKilled kills the first process of a sandbox from outside, as an operator or
// a machine without memory might. The trial looks like the one of the gallery that loses
// its sandbox in the first attempt, and nothing is left.
func TestFaultsInitKilled(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	for name, text := range map[string]string{
		"run.yaml": `
version: 1
name: killed
packs: [./pack]
agent:
  name: patient
  command: [sh, -c, '[ "$TIDEMILL_ATTEMPT" != 1 ] || { sleep 1000 & echo >up; wait; }; echo done']
runtime: {type: subprocess}
network_policy: full_internet
retry: {min_backoff: 1ms}
`,
		"pack/pack.yaml": `
version: 1
kind: dataset
name: killed
dataset: {path: tasks.jsonl, id_field: id}
instruction: Wait.
grade: {command: [sh, -c, 'echo 1 >"$TIDEMILL_LOGS_DIR/verifier/reward.txt"']}
`,
		"pack/tasks.jsonl": `{"id": "one"}` + "\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	before := lookAround(t)
	cmd := exec.CommandContext(t.Context(), "tidemill", "run", "--data", data, "--run-id", "killed", filepath.Join(dir, "run.yaml"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitMatch(t, filepath.Join(data, ".tidemill", "work", "*", "up"))
	killed, err := killInits(data)
	if err != nil || killed == 0 {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err == nil {
			t.Skip("this machine's sandboxes have no namespaces, and so no first process")
		}
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	store, err := dirstore.Open(data, dirstore.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	all := faults(t)
	row := all[slices.IndexFunc(all, func(f fault) bool { return f.ID == "sandbox/lost-once" })]
	r := readResults(t, store, bundle.Keys{Run: "killed"})["one"]
	row.check(t, store, r)
	testenv.NoLeaks(t, data)
	testenv.NoLeaks(t, r.TrialID, filepath.Join(data, ".tidemill"))
	before.compare(t, data)
}

// awaitMatch waits until a file is there.
func awaitMatch(t *testing.T, pattern string) {
	t.Helper()
	// Another process makes the file; it can tell us in no other way.
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not there after %s", pattern, patience)
		}
	}
}

// killInits kills the first process of every PID namespace, but our own, in which a
// program runs that has a word in its environment.
func killInits(word string) (killed int, err error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return 0, err
	}
	spaces := map[string]bool{}
	for _, dir := range dirs {
		space, _ := os.Readlink(dir + "/ns/pid")
		environ, _ := os.ReadFile(dir + "/environ")
		if space != "" && space != own && bytes.Contains(environ, []byte("TIDEMILL_TRIAL_ID=")) && bytes.Contains(environ, []byte(word)) {
			spaces[space] = true
		}
	}
	for _, dir := range dirs {
		if space, _ := os.Readlink(dir + "/ns/pid"); !spaces[space] {
			continue
		}
		status, _ := os.ReadFile(dir + "/status")
		for line := range strings.Lines(string(status)) {
			ids := strings.Fields(line)
			if len(ids) < 3 || ids[0] != "NSpid:" || ids[len(ids)-1] != "1" {
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(dir))
			if err != nil {
				return killed, err
			}
			p, err := os.FindProcess(pid)
			if err == nil {
				err = p.Kill()
			}
			if err != nil {
				return killed, err
			}
			killed++
		}
	}
	return killed, nil
}
