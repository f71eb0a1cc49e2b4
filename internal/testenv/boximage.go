// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/docker/docker/client"
)

// boxDir holds the program of the box image, below the module's root.
const boxDir = "internal/testenv/testdata/box"

// BoxImage returns a reference to an image that holds nothing but one static program,
// /box, its entrypoint: no shell, no libraries, no user but root. Its commands are told
// by "/box help".
func BoxImage(t testing.TB, cli *client.Client) string {
	t.Helper()
	version, err := cli.ServerVersion(t.Context())
	if err != nil {
		t.Fatalf("Docker: %v", err)
	}
	dir := filepath.Join(Root(t), filepath.FromSlash(boxDir))
	inputs := []string{"box 1", version.Arch, goruntime.Version()}
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no Go files in %s (%v)", dir, err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, filepath.Base(source), string(text))
	}
	return testImage{
		repository: "tidemill-test/box",
		inputs:     inputs,
		changes:    []string{`ENTRYPOINT ["/box"]`, `CMD ["help"]`},
		files: func(ctx context.Context, w io.Writer) error {
			binary, err := buildStatic(ctx, dir, version.Arch)
			if err != nil {
				return err
			}
			tree := newTree(w)
			tree.file("box", 0o755, binary)
			return tree.close()
		},
	}.ensure(t, cli)
}

// buildStatic compiles a program for containers of an architecture.
func buildStatic(ctx context.Context, dir, arch string) ([]byte, error) {
	out, err := os.CreateTemp("", "tidemill-test-box-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out.Name(), ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build %s: %w: %s", dir, err, strings.TrimSpace(string(text)))
	}
	return os.ReadFile(out.Name())
}
