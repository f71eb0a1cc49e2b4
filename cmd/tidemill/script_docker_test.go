// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tidemill/tidemill/internal/testenv"
)

// dockerVars say where the engine is; scripts have an environment of their own.
var dockerVars = []string{"DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "DOCKER_API_VERSION"}

// busyboxImage sets a variable to the reference of an image with a shell and the usual
// tools. Without an engine the script skips, or fails with CI=true.
func busyboxImage(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "busybox-image VAR")
	tb, ok := ts.Value(tbKey{}).(testing.TB)
	if !ok {
		ts.Fatalf("the script's test is no testing.TB")
	}
	for _, name := range dockerVars {
		if v, ok := os.LookupEnv(name); ok {
			ts.Setenv(name, v)
		}
	}
	ts.Setenv(args[0], testenv.BusyboxImage(tb, testenv.Docker(tb)))
}
