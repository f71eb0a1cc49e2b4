// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/runtime"
)

const testStore = "6f0c6c0e-54a6-4d64-a1ab-6f2c5c0f7e11"

// TestMain plays the worker that is killed as well; see crash_test.go.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirVar); dir != "" {
		crashingWorker(dir, os.Getenv(crashSpecVar))
	}
	goleak.VerifyTestMain(m)
}

// patience turns a hang into a failure.
const patience = 2 * time.Minute

// lab is an engine with a directory for a runtime's own things.
type lab struct {
	cli   *client.Client
	image string
	dir   string
}

// newLab is a lab at the end of which nothing may be left on the engine.
func newLab(t *testing.T) *lab {
	t.Helper()
	cli := testenv.Docker(t)
	l := &lab{cli: cli, image: testenv.BusyboxImage(t, cli), dir: t.TempDir()}
	t.Cleanup(func() {
		for _, left := range l.left(t) {
			t.Errorf("left behind: %s", left)
		}
	})
	return l
}

func benchLab(b *testing.B) *lab {
	b.Helper()
	cli := testenv.Docker(b)
	return &lab{cli: cli, image: testenv.BusyboxImage(b, cli), dir: b.TempDir()}
}

// left lists what has a record in the lab's directory.
func (l *lab) left(t testing.TB) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	filter := filters.NewArgs(filters.Arg("label", labelManaged+"="+Type))
	containers, err := l.cli.ContainerList(ctx, container.ListOptions{All: true, Filters: filter})
	networks, nerr := l.cli.NetworkList(ctx, network.ListOptions{Filters: filter})
	volumes, verr := l.cli.VolumeList(ctx, volume.ListOptions{Filters: filter})
	if err := errors.Join(err, nerr, verr); err != nil {
		t.Fatal(err)
	}
	var left []string
	note := func(kind, id string, labels map[string]string) {
		if strings.HasPrefix(labels[labelRecord], l.dir+"/") {
			left = append(left, fmt.Sprintf("%s %s of %s", kind, id, labels[labelName]))
		}
	}
	for _, c := range containers {
		note("container", c.ID, c.Labels)
	}
	for _, n := range networks {
		note("network", n.ID, n.Labels)
	}
	for _, v := range volumes.Volumes {
		note("volume", v.Name, v.Labels)
	}
	records, err := os.ReadDir(l.dir + "/" + boxesName)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, r := range records {
		left = append(left, "record "+r.Name())
	}
	return left
}

func (l *lab) runtime(t testing.TB, edit ...func(*Config)) *Runtime {
	t.Helper()
	// The suite plants another DOCKER_HOST.
	cfg := Config{Dir: l.dir, Store: testStore, Client: []client.Opt{client.WithHost(l.cli.DaemonHost())}}
	for _, e := range edit {
		e(&cfg)
	}
	rt, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt
}

func (l *lab) spec(edit ...func(*runtime.Spec)) runtime.Spec {
	name := runtime.NewName()
	s := runtime.Spec{
		Name: name, Image: runtime.Image{Ref: l.image},
		Labels:  runtime.Labels{Run: "r", Task: "t/0", Trial: name, Attempt: 1, ExpiresAt: time.Now().Add(time.Hour).UTC()},
		Network: map[runtime.Phase]runtime.Network{runtime.Agent: {Policy: runtime.NoInternet}},
	}
	for _, e := range edit {
		e(&s)
	}
	return s
}

func tryOpen(t testing.TB, rt *Runtime, spec runtime.Spec) (*Sandbox, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	env, err := rt.Prepare(ctx, runtime.RunSpec{Store: testStore})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close(context.Background()) })
	sb, err := env.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return sb.(*Sandbox), nil
}

// open opens a sandbox that the test's end closes.
func (l *lab) open(t testing.TB, rt *Runtime, edit ...func(*runtime.Spec)) *Sandbox {
	t.Helper()
	sb, err := tryOpen(t, rt, l.spec(edit...))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := sb.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return sb
}

// try runs a shell script and returns how it ended and what it printed.
func try(t testing.TB, sb *Sandbox, script string, edit ...func(*runtime.Command)) (runtime.Exit, string) {
	t.Helper()
	var out bytes.Buffer
	cmd := runtime.Command{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out, Timeout: patience}
	for _, e := range edit {
		e(&cmd)
	}
	exit, err := sb.Exec(t.Context(), cmd)
	if err != nil {
		t.Fatalf("sh -c %q: %v", script, err)
	}
	return exit, out.String()
}

// sh runs a shell script that has to succeed and returns what it printed.
func sh(t testing.TB, sb *Sandbox, script string, edit ...func(*runtime.Command)) string {
	t.Helper()
	exit, out := try(t, sb, script, edit...)
	if !exit.OK() {
		t.Fatalf("sh -c %q: exit %+v: %s", script, exit, out)
	}
	return out
}

// top lists what the engine says lives in a sandbox, zombies left out.
func (l *lab) top(t testing.TB, sb *Sandbox) []string {
	t.Helper()
	top, err := l.cli.ContainerTop(t.Context(), sb.box.ID, []string{"-eo", "pid,stat,args"})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, p := range top.Processes {
		if !strings.HasPrefix(p[1], "Z") {
			list = append(list, strings.Join(p, " "))
		}
	}
	return list
}

// onlyPID1 checks that nothing but our own program lives in a sandbox.
func (l *lab) onlyPID1(t testing.TB, sb *Sandbox) {
	t.Helper()
	if list := l.top(t, sb); len(list) != 1 || !strings.HasSuffix(list[0], toolPath) {
		t.Errorf("docker top has %q, want our PID 1 alone", list)
	}
}
