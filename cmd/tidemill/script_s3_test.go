// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tidemill/tidemill/internal/testenv"
)

// startS3 starts an S3 service that lives until the script ends, and sets TIDEMILL_STORE
// to a store in it, S3_ENDPOINT and S3_BUCKET to what that is made of, and the variables
// of the AWS tools to its credentials. Without one the script is skipped, or fails with
// CI=true.
func startS3(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: s3")
	}
	tb, ok := ts.Value(tbKey{}).(testing.TB)
	if !ok {
		ts.Fatalf("the script's test is no testing.TB")
	}
	server := testenv.StartS3(tb)
	for _, pair := range server.Env() {
		name, value, _ := strings.Cut(pair, "=")
		ts.Setenv(name, value)
	}
	ts.Setenv("TIDEMILL_STORE", server.URL(server.Prefix(), ""))
	ts.Setenv("S3_ENDPOINT", server.Endpoint)
	ts.Setenv("S3_BUCKET", server.Bucket)
}
