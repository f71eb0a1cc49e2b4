// SPDX-License-Identifier: Apache-2.0

// Package testenv finds what a test needs outside the process, and says in one
// sentence why a test can't run where it is missing. Only tests import it.
//
// On a developer's machine a missing thing skips the test. With CI=true it fails
// the test where the thing is a part of the product's surroundings (Docker, NATS,
// S3), because there a skip would hide that nothing was tested.
package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// CasesVariable names the directory with other people's data sets.
const CasesVariable = "TIDEMILL_CASES"

// OnCI reports whether skipping is forbidden: the variable CI is "true".
func OnCI() bool { return os.Getenv("CI") == "true" }

// Root returns the directory of the module's go.mod, found upwards from the
// directory in which the test runs.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("working directory: %v", err)
	}
	root, ok := rootFrom(dir)
	if !ok {
		t.Fatalf("no go.mod in %s or above it", dir)
	}
	return root
}

func rootFrom(dir string) (string, bool) {
	for {
		if info, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && info.Mode().IsRegular() {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

// Cases returns the directory with other people's data sets: TIDEMILL_CASES, or
// shared/cases beside the checkout. A relative value is relative to the module's
// root, so that it means the same in every package. The test is skipped when the
// directory is not there: the data is nobody's duty to have.
func Cases(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(CasesVariable)
	if dir == "" {
		dir = filepath.Join("..", "shared", "cases")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(Root(t), dir)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Skipf("needs the directory of data sets named by %s; there is none at %s", CasesVariable, dir)
	}
	return dir
}

// Python returns the path of a python3 that starts, or skips the test.
func Python(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3 in PATH; there is none")
	}
	// A version manager's shim is found but may have nothing behind it.
	if out, err := exec.CommandContext(t.Context(), path, "-c", "").CombinedOutput(); err != nil {
		t.Skipf("needs a python3 that starts; %s says: %v %s", path, err, out)
	}
	return path
}

// RequireOrFail ends a test for want of something: a skip on a developer's machine,
// a failure with CI=true. Say what is missing and how it was looked for: "Docker:
// no answer on its socket".
func RequireOrFail(t testing.TB, what string) {
	t.Helper()
	if OnCI() {
		t.Fatalf("needs %s; with CI=true this may not be skipped", what)
	}
	t.Skipf("needs %s", what)
}
