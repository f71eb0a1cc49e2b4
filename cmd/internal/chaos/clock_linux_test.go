// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/internal/testenv"
)

// A wall clock of its own for a process: there is no such thing in Linux, and the machine's
// is everybody's. So the binary is built with a standard library whose time.Now adds what a
// file says, by the go command's -overlay. Not a line of the product knows of it, and all of
// it is befallen: the clients of NATS and S3 too. Monotonic time goes on as it was, as it
// does when somebody sets a real clock.

// clockVariable names the file that holds by how many seconds the clock is off.
const clockVariable = "TIDEMILL_CHAOS_CLOCK"

// clockPoll is how often a process looks into the file.
const clockPoll = 50 * time.Millisecond

const nowBefore = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"

const nowAfter = nowBefore + "\tsec += atomicOffset.Load()\n"

const offsetDecl = `
var atomicOffset atomic.Int64

// SetChaosOffset makes the wall clock differ from the machine's, in seconds.
func SetChaosOffset(seconds int64) { atomicOffset.Store(seconds) }
`

const clockMain = `package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

func init() {
	path := os.Getenv("` + clockVariable + `")
	if path == "" {
		return
	}
	go func() {
		for range time.Tick(%d) {
			text, _ := os.ReadFile(path)
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				time.SetChaosOffset(n)
			}
		}
	}()
}
`

// patchTime returns the source of package time with a clock that can be off.
func patchTime(source string) (string, error) {
	if strings.Count(source, nowBefore) != 1 || strings.Count(source, "import (\n") != 1 || strings.Contains(source, `"sync/atomic"`) {
		return "", fmt.Errorf("time.Now of this Go is not the one that the patch is for")
	}
	source = strings.Replace(source, "import (\n", "import (\n\t\"sync/atomic\"\n", 1)
	return strings.Replace(source, nowBefore, nowAfter, 1) + offsetDecl, nil
}

// overlay writes what -overlay wants, and returns its path. The directory has to be the
// same each time, or nothing of what was built is found again.
func overlay(root, dir string) (string, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	patched, err := patchTime(string(source))
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for of, text := range map[string]string{
		original: patched,
		filepath.Join(root, "cmd", "tidemill", "chaosclock.go"): fmt.Sprintf(clockMain, clockPoll),
	} {
		file := filepath.Join(dir, filepath.Base(of))
		replace[of] = file
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	body, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, body, 0o600)
}

// buildTidemill builds the program as it is in the tree, into dir, with a clock that can
// jump where that is asked for.
func buildTidemill(t testing.TB, dir string, clock bool) string {
	t.Helper()
	root := testenv.Root(t)
	program := filepath.Join(dir, "tidemill")
	args := []string{"build", "-o", program}
	if clock {
		kept := filepath.Join(root, ".bin", "chaos")
		if err := os.MkdirAll(kept, 0o777); err != nil {
			t.Fatal(err)
		}
		file, err := overlay(root, kept)
		if err != nil {
			t.Fatalf("a clock that jumps: %v", err)
		}
		args = append(args, "-overlay", file)
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./cmd/tidemill")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build tidemill: %v\n%s", err, out)
	}
	return program
}

func TestPatchTime(t *testing.T) {
	for name, source := range map[string]string{
		"another time.Now": "import (\n)\nfunc Now() Time { return Time{} }\n",
		"two of them":      "import (\n)\n" + nowBefore + "}\n" + nowBefore + "}\n",
	} {
		if got, err := patchTime(source); err == nil {
			t.Errorf("%s: patched to %s", name, got)
		}
	}
	got, err := patchTime("import (\n)\n" + nowBefore + "}\n")
	if err != nil || !strings.Contains(got, nowAfter) {
		t.Errorf("got %s, %v", got, err)
	}
}
