// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
)

func TestDockerSkipsOrFailsWithoutAnEngine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+t.TempDir()+"/none.sock")
	for ci, want := range map[string]string{"": "skip", "true": "fail"} {
		t.Setenv("CI", ci)
		r := observe(t, func(t testing.TB) { Docker(t) })
		if r.ended != want || !strings.Contains(r.message, "Docker") || !strings.Contains(r.message, "none.sock") {
			t.Errorf("CI=%q: %q %q; want %q and where it was looked for", ci, r.ended, r.message, want)
		}
	}
}

func TestTestImagesRun(t *testing.T) {
	cli := Docker(t)
	for name, row := range map[string]struct {
		image func(testing.TB, *client.Client) string
		argv  []string
		want  string
	}{
		"box":     {BoxImage, []string{"print", "a b", "+", "id"}, "a b\n0 0\n"},
		"busybox": {BusyboxImage, []string{"sh", "-c", "echo $((6*7)); id -un agent | head -n 1; which wget"}, "42\nagent\n/usr/bin/wget\n"},
		"debian":  {DebianImage, []string{"bash", "-c", "python -c 'import pytest; print(6*7)'; command -v curl; id -u other"}, "42\n/usr/bin/curl\n1001\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ref := row.image(t, cli)
			if again := row.image(t, cli); again != ref {
				t.Errorf("the second call returns %s, the first %s", again, ref)
			}
			if got := output(t, cli, ref, row.argv); got != row.want {
				t.Errorf("%q prints %q; want %q", row.argv, got, row.want)
			}
		})
	}
}

func TestTagsFollowTheInputs(t *testing.T) {
	base := testImage{repository: "r", version: "12", inputs: []string{"a", "b"}, changes: []string{"CMD x"}}
	refs := []string{base.ref()}
	if !base.isTag(base.ref()) || base.isTag("r:12") || base.isTag("s:12-0123456789abcdef") {
		t.Errorf("isTag knows %s wrongly", base.ref())
	}
	for name, edit := range map[string]func(*testImage){
		"another input":       func(ti *testImage) { ti.inputs = []string{"a", "c"} },
		"inputs cut anew":     func(ti *testImage) { ti.inputs = []string{"ab"} },
		"another instruction": func(ti *testImage) { ti.changes = []string{"CMD y"} },
	} {
		other := base
		edit(&other)
		if slices.Contains(refs, other.ref()) {
			t.Errorf("%s: the same reference %s", name, other.ref())
		}
		refs = append(refs, other.ref())
	}
}

// A base image has the name for as long as anyone uses it, and not longer.
func TestBaseImageBorrowsAName(t *testing.T) {
	cli := Docker(t)
	const name = "tidemill-test/borrowed:1"
	there := func() bool {
		_, err := cli.ImageInspect(t.Context(), name)
		if err != nil && !cerrdefs.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	t.Run("first", func(t *testing.T) {
		BaseImage(t, cli, name)
		t.Run("second", func(t *testing.T) { BaseImage(t, cli, name) })
		if !there() {
			t.Errorf("%s is gone while it is used", name)
		}
	})
	if there() {
		t.Errorf("%s is there after its last user ended", name)
	}
}

func TestBaseImageLeavesARealOneAlone(t *testing.T) {
	cli := Docker(t)
	const name = "tidemill-test/real:1"
	foreign := testImage{repository: "tidemill-test/real", inputs: []string{"x"}, files: func(_ context.Context, w io.Writer) error {
		tree := newTree(w)
		tree.dir("etc", 0o755)
		return tree.close()
	}}
	// Made like a test image, but without the label.
	var rootfs bytes.Buffer
	if err := foreign.files(t.Context(), &rootfs); err != nil {
		t.Fatal(err)
	}
	body, err := cli.ImageImport(t.Context(), image.ImportSource{Source: &rootfs, SourceName: "-"}, name, image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := streamEnd(body); err != nil {
		t.Fatal(err)
	}
	body.Close()
	before, err := cli.ImageInspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cli.ImageRemove(context.WithoutCancel(t.Context()), name, image.RemoveOptions{}) })

	t.Run("use", func(t *testing.T) { BaseImage(t, cli, name) })
	after, err := cli.ImageInspect(t.Context(), name)
	if err != nil || after.ID != before.ID {
		t.Errorf("%s was %s and is %s (%v)", name, before.ID, after.ID, err)
	}
}

// output runs a program in a container that is removed afterwards.
func output(t testing.TB, cli *client.Client, ref string, argv []string) string {
	t.Helper()
	ctx := t.Context()
	c, err := cli.ContainerCreate(ctx, &container.Config{Image: ref, Cmd: argv}, &container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		opts := container.RemoveOptions{Force: true, RemoveVolumes: true}
		if err := cli.ContainerRemove(context.WithoutCancel(ctx), c.ID, opts); err != nil {
			t.Error(err)
		}
	}()
	if err := cli.ContainerStart(ctx, c.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	done, failed := cli.ContainerWait(ctx, c.ID, container.WaitConditionNotRunning)
	select {
	case <-done:
	case err := <-failed:
		t.Fatal(err)
	}
	logs, err := cli.ContainerLogs(ctx, c.ID, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &out, logs); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
