// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder stands in for a test and notes how it ended.
type recorder struct {
	testing.TB
	ended   string // "skip" or "fail"
	message string
}

type endOfTest struct{}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.ended, r.message = "fail", r.message+fmt.Sprintf(format, args...)+"\n"
}
func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }
func (r *recorder) Skip(args ...any)  { r.Skipf("%s", fmt.Sprint(args...)) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(endOfTest{})
}

func (r *recorder) Skipf(format string, args ...any) {
	r.ended, r.message = "skip", fmt.Sprintf(format, args...)
	panic(endOfTest{})
}

// observe runs f as a test of its own and returns how it ended.
func observe(t *testing.T, f func(t testing.TB)) *recorder {
	r := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil {
				if _, ours := p.(endOfTest); !ours {
					panic(p)
				}
			}
		}()
		f(r)
	}()
	return r
}

func TestRootIsWhereGoModIs(t *testing.T) {
	root := Root(t)
	if _, err := os.Stat(filepath.Join(root, "internal", "testenv", "testenv.go")); err != nil {
		t.Fatal(err)
	}
	if got, ok := rootFrom(t.TempDir()); ok {
		t.Errorf("rootFrom(temporary directory) = %q; want none", got)
	}
}

func TestCases(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	t.Setenv(CasesVariable, absent)
	r := observe(t, func(t testing.TB) { Cases(t) })
	if r.ended != "skip" || !strings.Contains(r.message, absent) || !strings.Contains(r.message, CasesVariable) {
		t.Errorf("Cases without the directory: %q %q; want a skip that names variable and directory", r.ended, r.message)
	}

	present := t.TempDir()
	t.Setenv(CasesVariable, present)
	if got := Cases(t); got != present {
		t.Errorf("Cases = %q; want %q", got, present)
	}

	t.Setenv(CasesVariable, "internal/testenv")
	if got, want := Cases(t), filepath.Join(Root(t), "internal", "testenv"); got != want {
		t.Errorf("Cases with a relative value = %q; want %q", got, want)
	}
}

func TestPythonSkipsWhereThereIsNone(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if r := observe(t, func(t testing.TB) { Python(t) }); r.ended != "skip" {
		t.Errorf("Python with an empty PATH: %q; want a skip", r.ended)
	}
}

func TestRequireOrFail(t *testing.T) {
	for value, want := range map[string]string{"": "skip", "false": "skip", "true": "fail"} {
		t.Setenv("CI", value)
		r := observe(t, func(t testing.TB) { RequireOrFail(t, "Docker: no answer") })
		if r.ended != want || !strings.Contains(r.message, "Docker: no answer") {
			t.Errorf("CI=%q: %q %q; want %q and the reason", value, r.ended, r.message, want)
		}
	}
}

func TestNoLeaks(t *testing.T) {
	marker := fmt.Sprintf("tm-leak-test-%d", os.Getpid())

	t.Run("nothing is left", func(t *testing.T) {
		if r := observe(t, func(t testing.TB) { NoLeaks(t, marker, t.TempDir()) }); r.ended != "" {
			t.Errorf("ended %q: %s", r.ended, r.message)
		}
	})
	t.Run("an empty marker is refused", func(t *testing.T) {
		if r := observe(t, func(t testing.TB) { NoLeaks(t, "") }); r.ended != "fail" {
			t.Error("want a failure")
		}
	})
	t.Run("a process with the marker in its environment", func(t *testing.T) {
		if goruntime.GOOS != "linux" {
			t.Skip("processes are found on Linux only")
		}
		cmd := exec.Command("cat")
		cmd.Env = append(os.Environ(), "TIDEMILL_TRIAL_ID="+marker)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Start returns after exec succeeded, so the environment is there.
		r := observe(t, func(t testing.TB) { NoLeaks(t, marker) })
		if want := fmt.Sprintf("process %d (cat)", cmd.Process.Pid); r.ended != "fail" || !strings.Contains(r.message, want) {
			t.Errorf("ended %q: %s; want a failure that names %s", r.ended, r.message, want)
		}
		_ = in.Close()
		_ = cmd.Wait()
		NoLeaks(t, marker)
	})
	t.Run("a directory and a file with the marker in their names", func(t *testing.T) {
		root := t.TempDir()
		dir := filepath.Join(root, "work", marker)
		if err := os.MkdirAll(filepath.Join(dir, "below"), 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(root, marker+".lock")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r := observe(t, func(t testing.TB) { NoLeaks(t, marker, root) })
		for _, want := range []string{"directory " + dir, "file " + file} {
			if !strings.Contains(r.message, want) {
				t.Errorf("got %q; want it to name %q", r.message, want)
			}
		}
	})
}

// A marker that goes on is another's.
func TestMarkerAsAWhole(t *testing.T) {
	for text, want := range map[string]bool{
		"WORK=/tmp/script-debug\x00PATH=/bin":        true,
		"/tmp/script-debug/results":                  true,
		"at the end /tmp/script-debug":               true,
		"/tmp/script-debug.1":                        true,
		"WORK=/tmp/script-debug-storage":             false,
		"/tmp/script-debug-storage/tmp/script-debug": true,
		"/tmp/script-debugging":                      false,
		"":                                           false,
	} {
		if got := has([]byte(text), "/tmp/script-debug"); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if !has([]byte("/tmp/bin/tidemill"), "/tmp/bin/") {
		t.Error("a marker that ends with a slash was not found before a name")
	}
}
