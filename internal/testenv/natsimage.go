// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/docker/docker/client"
)

// natsServerPackage is the NATS server's program. It is of the module that go.mod names,
// so that tests in containers have the version that is embedded.
const natsServerPackage = "github.com/nats-io/nats-server/v2"

// NATSImage returns a reference to an image that holds nothing but a static nats-server,
// its entrypoint, and the directory /data.
func NATSImage(t testing.TB, cli *client.Client) string {
	t.Helper()
	version, err := cli.ServerVersion(t.Context())
	if err != nil {
		t.Fatalf("Docker: %v", err)
	}
	root := Root(t)
	server, err := requiredVersion(root, natsServerPackage)
	if err != nil {
		t.Fatal(err)
	}
	return testImage{
		repository: "tidemill-test/nats",
		inputs:     []string{"nats 1", server, version.Arch, goruntime.Version()},
		changes:    []string{`ENTRYPOINT ["/nats-server"]`, "EXPOSE 4222 6222 8222"},
		files: func(ctx context.Context, w io.Writer) error {
			binary, err := buildStaticPackage(ctx, root, natsServerPackage, version.Arch)
			if err != nil {
				return err
			}
			tree := newTree(w)
			tree.file("nats-server", 0o755, binary)
			tree.dir("data", 0o700)
			tree.dir("tmp", 0o1777)
			return tree.close()
		},
	}.ensure(t, cli)
}

// requiredVersion reads a module's version from go.mod.
func requiredVersion(root, module string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("go.mod requires no %s", module)
	}
	return string(m[1]), nil
}

// buildStaticPackage compiles a program of a module that go.mod requires.
func buildStaticPackage(ctx context.Context, root, pkg, arch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "tidemill-test-build-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "program")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=-mod=readonly")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build %s: %w: %s", pkg, err, strings.TrimSpace(string(text)))
	}
	return os.ReadFile(out)
}
