// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Variables that name an S3 service for tests, instead of one that they start. The
// credentials are where the AWS tools have them. Tests leave objects in the bucket only
// below the prefix tidemill-test-….
const (
	S3EndpointVariable = "TIDEMILL_TEST_S3_ENDPOINT"
	S3BucketVariable   = "TIDEMILL_TEST_S3_BUCKET"
	S3RegionVariable   = "TIDEMILL_TEST_S3_REGION"
)

// S3Server is a service that speaks S3, with a bucket.
type S3Server struct {
	Endpoint  string `json:"endpoint"`
	Region    string `json:"region"`
	Bucket    string `json:"bucket"`
	AccessKey string `json:"access_key"` // empty where the test was given a service
	SecretKey string `json:"secret_key"`
	// Domain is the host name that has buckets before it, empty where nobody knows. It has
	// no address: a proxy has to lead there.
	Domain string `json:"domain"`
}

// S3 returns a service as [StartS3] does, and sets the test's environment to its
// credentials.
func S3(t testing.TB) S3Server {
	t.Helper()
	s := StartS3(t)
	for _, pair := range s.Env() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	return s
}

// StartS3 returns a service that speaks S3: the one that TIDEMILL_TEST_S3_ENDPOINT names,
// or one that lives until the test ends and is built from tools/s3server. A test that
// can't have one skips, or fails with CI=true.
func StartS3(t testing.TB) S3Server {
	t.Helper()
	if endpoint := os.Getenv(S3EndpointVariable); endpoint != "" {
		s := S3Server{Endpoint: endpoint, Bucket: os.Getenv(S3BucketVariable), Region: os.Getenv(S3RegionVariable)}
		if s.Bucket == "" {
			t.Fatalf("%s is set, but not %s", S3EndpointVariable, S3BucketVariable)
		}
		return s
	}
	return startS3(t, buildS3(t))
}

// Env is the environment in which programs have the service's credentials and no others,
// as NAME=value: nothing that the AWS tools' files or the machine have.
func (s S3Server) Env() []string {
	if s.AccessKey == "" {
		return slices.DeleteFunc(os.Environ(), func(pair string) bool { return !strings.HasPrefix(pair, "AWS_") })
	}
	return []string{
		"AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey, "AWS_SESSION_TOKEN=",
		"AWS_PROFILE=", "AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_ENDPOINT_URL=", "AWS_ENDPOINT_URL_S3=", "AWS_REGION=", "AWS_DEFAULT_REGION=",
	}
}

// Prefix returns one that no other test has.
func (s S3Server) Prefix() string { return "tidemill-test-" + strings.ToLower(rand.Text()[:12]) }

// URL is that of a store in the bucket, at another address of the service where one is
// given.
func (s S3Server) URL(prefix, endpoint string) string {
	if endpoint == "" {
		endpoint = s.Endpoint
	}
	q := url.Values{"endpoint": {endpoint}}
	if s.Region != "" {
		q.Set("region", s.Region)
	}
	return "s3://" + s.Bucket + "/" + prefix + "?" + q.Encode()
}

// buildS3 builds the server, unless it is up to date, and returns its path. Test binaries
// that want it at once wait for each other.
func buildS3(t testing.TB) string {
	t.Helper()
	root := Root(t)
	path := filepath.Join(root, ".bin", "s3server")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	defer lock(t, "s3server", syscall.LOCK_EX)()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	cmd.Dir = filepath.Join(root, "tools", "s3server")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		RequireOrFail(t, fmt.Sprintf("S3: neither does %s name a service, nor can tools/s3server be built: %v %.500s", S3EndpointVariable, err, out))
	}
	return path
}

// startS3 starts the server, which ends when its standard input does: with the test, or
// with the process.
func startS3(t testing.TB, path string) (s S3Server) {
	t.Helper()
	cmd := exec.Command(path)
	var said bytes.Buffer // read once the process has ended
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("S3 server: %v", err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("S3 server: %v", err)
		}
		if t.Failed() && said.Len() > 0 {
			t.Logf("S3 server said:\n%s", &said)
		}
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("S3 server said nothing: %v", err)
	}
	if err := json.Unmarshal(line, &s); err != nil {
		t.Fatalf("S3 server said %q: %v", line, err)
	}
	return s
}
