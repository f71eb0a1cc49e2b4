// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/testenv"
)

const hostNameVariable = "TIDEMILL_TEST_S3_HOST_NAME"

// TestStoreByHostName runs the suite with the bucket in the host name, as AWS wants it. The
// name has no address, so all goes through a proxy; the environment's is looked up once in
// a process, so the suite runs in another.
func TestStoreByHostName(t *testing.T) {
	if os.Getenv(hostNameVariable) != "" {
		suite(t, testenv.StartS3(t), "", "&path_style=false")
		return
	}
	server := testenv.S3(t)
	if server.Domain == "" {
		t.Skipf("the service that %s names may have no domain for buckets", testenv.S3EndpointVariable)
	}
	proxy := testenv.NewFaultProxy(t, server.Endpoint)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStoreByHostName$", "-test.v")
	cmd.Env = append(os.Environ(), hostNameVariable+"=1", "HTTP_PROXY="+proxy.URL, "NO_PROXY=",
		testenv.S3EndpointVariable+"=http://"+server.Domain, testenv.S3BucketVariable+"="+server.Bucket,
		testenv.S3RegionVariable+"="+server.Region)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	seen := proxy.Seen()
	if len(seen) < 1000 {
		t.Errorf("the suite made %d requests", len(seen))
	}
	for _, request := range seen {
		if strings.Contains(request, " /"+server.Bucket+"/") {
			t.Fatalf("%s has the bucket in its path", request)
		}
	}
}
