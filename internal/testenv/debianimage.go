// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
)

// DebianScript makes the root file system, below the module's root.
const DebianScript = "deploy/images/debian.sh"

// DebianImage returns a reference to a Debian 12 with bash, coreutils, curl and python3,
// made from Debian's packages; no registry is asked. Making it takes about a minute.
func DebianImage(t testing.TB, cli *client.Client) string {
	t.Helper()
	script := filepath.Join(Root(t), filepath.FromSlash(DebianScript))
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	return testImage{
		repository: "tidemill-test/debian",
		version:    "12",
		inputs:     []string{string(text)},
		changes:    []string{`CMD ["bash"]`},
		files: func(ctx context.Context, w io.Writer) error {
			var errs bytes.Buffer
			cmd := exec.CommandContext(ctx, script, "--tar")
			cmd.Stdout, cmd.Stderr = w, &errs
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%s --tar: %w: %s", DebianScript, err, lastLines(errs.String(), 5))
			}
			return nil
		},
	}.ensure(t, cli)
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// BaseImage makes sure that there is an image called name, such as "ubuntu:24.04", for
// tasks whose Dockerfile starts from it. An image of that name that is there is taken
// as it is; otherwise the Debian image has that name until the last test that asked for
// it ended, in whatever process.
func BaseImage(t testing.TB, cli *client.Client, name string) {
	t.Helper()
	// Everyone who uses the name holds the lock shared. Who then gets it alone is the
	// last one.
	held, err := lockFile("base " + name)
	if err == nil {
		err = flock(held, syscall.LOCK_SH)
	}
	if err != nil {
		t.Fatalf("lock for %s: %v", name, err)
	}
	release := sync.OnceFunc(func() { _ = held.Close() })
	t.Cleanup(release)

	ctx := t.Context()
	info, err := cli.ImageInspect(ctx, name)
	switch {
	case err == nil && (info.Config == nil || info.Config.Labels[TestImageLabel] == ""):
		return
	case err != nil && !cerrdefs.IsNotFound(err):
		t.Fatalf("image %s: %v", name, err)
	}
	// Ours, perhaps of old inputs, or none.
	if err := cli.ImageTag(ctx, DebianImage(t, cli), name); err != nil {
		t.Fatalf("tag %s: %v", name, err)
	}
	t.Cleanup(func() {
		defer release()
		if err := flock(held, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			return // somebody else uses it
		}
		// The name of ours is removed, not the image, which has another one. The test's
		// context has ended.
		ctx := context.WithoutCancel(ctx)
		info, err := cli.ImageInspect(ctx, name)
		if err != nil || info.Config == nil || info.Config.Labels[TestImageLabel] == "" {
			return
		}
		if _, err := cli.ImageRemove(ctx, name, image.RemoveOptions{}); err != nil && !cerrdefs.IsNotFound(err) {
			t.Errorf("untag %s: %v", name, err)
		}
	})
}
