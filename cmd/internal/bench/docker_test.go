// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker"
)

// dockerTrials is how many trials each side of a pair runs.
const dockerTrials = 16

// BenchmarkDockerPairs sets sandboxes of the docker runtime beside the same calls made by
// hand, in turn: create and start a container without a network, run two programs in it,
// remove it. An iteration is one pair of 16 trials a side; who begins alternates. ratio is
// the median of the bare side's time by ours, pair by pair. calls are what the engine is
// asked a trial, on our side and by hand.
func BenchmarkDockerPairs(b *testing.B) {
	cli := testenv.Docker(b)
	image := testenv.BusyboxImage(b, cli)
	for _, slots := range slotCounts {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			ours, bare := newDockerRig(b, image), &bareDocker{cli: cli, image: image}
			var p pairs
			for range b.N {
				p.run(func() { parallel(b, slots, bare.trial) }, func() { parallel(b, slots, ours.trial) })
			}
			n := float64(b.N * dockerTrials)
			b.ReportMetric(p.ratio(), "ratio")
			b.ReportMetric(dockerTrials/median(p.second), "trials/s")
			b.ReportMetric(dockerTrials/median(p.first), "bare/s")
			b.ReportMetric(float64(ours.calls.Load())/n, "calls")
			b.ReportMetric(float64(bareCalls), "barecalls")
		})
	}
}

// parallel does the trials of one side, so many at a time.
func parallel(b *testing.B, slots int, trial func(context.Context) error) {
	b.Helper()
	var left atomic.Int64
	left.Store(dockerTrials)
	var wg sync.WaitGroup
	for range slots {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := trial(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// dockerRig is the docker runtime with a counter before the engine.
type dockerRig struct {
	env   runtime.Environment
	image string
	calls atomic.Int64
}

func newDockerRig(b *testing.B, image string) *dockerRig {
	b.Helper()
	r := &dockerRig{image: image}
	count := func(c *client.Client) error {
		h := c.HTTPClient()
		h.Transport = counted{h.Transport, &r.calls}
		return client.WithHTTPClient(h)(c)
	}
	rt, err := docker.New(docker.Config{
		Dir: filepath.Join(benchDir(b), "docker"), Store: enqueueStore, Client: []client.Opt{client.FromEnv, count},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { rt.Close() })
	r.env, err = rt.Prepare(b.Context(), runtime.RunSpec{
		Network: []runtime.Network{{Policy: runtime.NoInternet}}, Images: []runtime.Image{{Ref: image}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.env.Close(context.Background()) })
	// What is found out once isn't part of a trial.
	if err := r.trial(b.Context()); err != nil {
		b.Fatal(err)
	}
	r.calls.Store(0)
	return r
}

// program is what both sides run: it prints a line.
var program = []string{"echo", "here"}

func (r *dockerRig) trial(ctx context.Context) (err error) {
	sb, err := r.env.Open(ctx, runtime.Spec{
		Image: runtime.Image{Ref: r.image}, Labels: runtime.Labels{Store: enqueueStore},
		Workdir: "/tmp", // is in the image, as on the bare side; one that isn't is one call more
		Network: map[runtime.Phase]runtime.Network{runtime.Agent: {Policy: runtime.NoInternet}},
	})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := sb.Close(ctx); err == nil {
			err = cerr
		}
	}()
	for range 2 {
		r.calls.Add(1) // an exec's start goes over a connection of its own
		exit, err := sb.Exec(ctx, runtime.Command{Argv: program, Stdout: io.Discard, Stderr: io.Discard})
		if err != nil || !exit.OK() {
			return fmt.Errorf("%v: %w", exit, err)
		}
	}
	return nil
}

type counted struct {
	http.RoundTripper
	n *atomic.Int64
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// bareDocker asks the engine for no more than a trial can't do without.
type bareDocker struct {
	cli   *client.Client
	image string
}

// bareCalls is how many requests that is: create, start, two times create, start and
// inspect of an exec, remove.
const bareCalls = 9

func (d *bareDocker) trial(ctx context.Context) error {
	made, err := d.cli.ContainerCreate(ctx, &container.Config{
		Image: d.image, Entrypoint: []string{"sleep", "1000000"},
	}, &container.HostConfig{
		NetworkMode: "none", LogConfig: container.LogConfig{Type: "none"}, IpcMode: container.IPCModePrivate,
		CapDrop: []string{"MKNOD", "NET_RAW"}, SecurityOpt: []string{"no-new-privileges"},
	}, nil, nil, "")
	if err != nil {
		return err
	}
	work := func() error {
		if err := d.cli.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
			return err
		}
		for range 2 {
			if err := d.exec(ctx, made.ID); err != nil {
				return err
			}
		}
		return nil
	}
	err = work()
	if rerr := d.cli.ContainerRemove(ctx, made.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}); err == nil {
		err = rerr
	}
	return err
}

func (d *bareDocker) exec(ctx context.Context, id string) error {
	x, err := d.cli.ContainerExecCreate(ctx, id, container.ExecOptions{Cmd: program, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return err
	}
	s, err := d.cli.ContainerExecAttach(ctx, x.ID, container.ExecAttachOptions{})
	if err != nil {
		return err
	}
	_, err = stdcopy.StdCopy(io.Discard, io.Discard, s.Reader)
	s.Close()
	if err != nil {
		return err
	}
	info, err := d.cli.ContainerExecInspect(ctx, x.ID)
	if err == nil && info.ExitCode != 0 {
		err = fmt.Errorf("exit code %d", info.ExitCode)
	}
	return err
}
