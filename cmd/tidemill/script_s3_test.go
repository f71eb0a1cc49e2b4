// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tidemill/tidemill/internal/testenv"
)

// startS3 starts an S3 service that lives until the script ends, and sets TIDEMILL_STORE
// to a store in it, S3_ENDPOINT and S3_BUCKET to what that is made of, and the variables
// of the AWS tools to its credentials. Without one the script is skipped, or fails with
// CI=true. s3 readonly is one on which nothing may be written, and the clock of s3 skewed
// is too far from ours.
func startS3(ts *testscript.TestScript, neg bool, args []string) {
	flaws := map[string]testenv.HTTPFault{
		"readonly": {Match: writes, Do: testenv.Answer(http.StatusForbidden, "AccessDenied")},
		"skewed":   {Do: testenv.Answer(http.StatusForbidden, "RequestTimeTooSkewed")},
	}
	var flaw testenv.HTTPFault
	known := true
	if len(args) > 0 {
		flaw, known = flaws[args[0]]
	}
	if neg || len(args) > 1 || !known {
		ts.Fatalf("usage: s3 [readonly|skewed]")
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
	if flaw.Do != nil {
		proxy := testenv.NewFaultProxy(tb, server.Endpoint)
		proxy.Inject(flaw)
		server.Endpoint = proxy.URL
	}
	ts.Setenv("TIDEMILL_STORE", server.URL(server.Prefix(), ""))
	ts.Setenv("S3_ENDPOINT", server.Endpoint)
	ts.Setenv("S3_BUCKET", server.Bucket)
}

func writes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }
