// SPDX-License-Identifier: Apache-2.0

package netcheck

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/subnet"
)

// like is what trials' containers are like.
func like() (*container.Config, *container.HostConfig) {
	return &container.Config{User: "0:0", WorkingDir: "/"}, &container.HostConfig{
		LogConfig: container.LogConfig{Type: "none"}, CapDrop: []string{"MKNOD", "NET_RAW"}, SecurityOpt: []string{"no-new-privileges"},
	}
}

// check runs one at a client, and looks for what it left.
func check(t *testing.T, cli *client.Client, api client.APIClient, box func() (*container.Config, *container.HostConfig)) (Result, error) {
	t.Helper()
	pool, err := subnet.New(cli, subnet.Config{Range: netip.MustParsePrefix("10.213.240.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"dev.tidemill.test": `it's "$HOME" \ ` + t.Name()}
	r, runErr := Run(t.Context(), api, Options{Subnets: pool, Labels: labels, Box: box})
	mine := filters.NewArgs(filters.Arg("label", "dev.tidemill.test="+labels["dev.tidemill.test"]))
	boxes, err1 := cli.ContainerList(t.Context(), container.ListOptions{All: true, Filters: mine})
	networks, err2 := cli.NetworkList(t.Context(), network.ListOptions{Filters: mine})
	images, err3 := cli.ImageList(t.Context(), image.ListOptions{Filters: mine})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if len(boxes)+len(networks)+len(images) > 0 {
		t.Errorf("left behind: containers %v, networks %v, images %v", boxes, networks, images)
	}
	return r, runErr
}

func TestBothPoliciesHoldOnThisEngine(t *testing.T) {
	cli := testenv.Docker(t)
	r, err := check(t, cli, cli, like)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Policies, []runtime.NetworkPolicy{runtime.FullInternet, runtime.NoInternet}) || len(r.Why) != 0 || r.Switch != "" {
		t.Errorf("%+v", r)
	}
}

// misled is an engine that takes what it is asked for and does something else.
type misled struct {
	client.APIClient
	create func(name string, c *container.Config, h *container.HostConfig)
	// execs that succeed before they fail; negative: all.
	execs atomic.Int32
}

func (m *misled) ContainerCreate(ctx context.Context, c *container.Config, h *container.HostConfig,
	n *network.NetworkingConfig, p *ocispec.Platform, name string,
) (container.CreateResponse, error) {
	if m.create != nil {
		m.create(name, c, h)
	}
	return m.APIClient.ContainerCreate(ctx, c, h, n, p, name)
}

func (m *misled) ContainerExecCreate(ctx context.Context, id string, o container.ExecOptions) (container.ExecCreateResponse, error) {
	if m.execs.Add(-1) == 0 {
		return container.ExecCreateResponse{}, errNoExec
	}
	return m.APIClient.ContainerExecCreate(ctx, id, o)
}

var errNoExec = errors.New("no exec today")

func TestAnEngineThatDoesSomethingElseLosesThePolicy(t *testing.T) {
	cli := testenv.Docker(t)
	for _, c := range []struct {
		name   string
		create func(name string, c *container.Config, h *container.HostConfig)
		want   []string // in the sentence
		full   bool     // full_internet holds
	}{
		{"the closed box is on the default bridge", func(name string, _ *container.Config, h *container.HostConfig) {
			if strings.HasSuffix(name, "-closed") {
				h.NetworkMode = "bridge"
			}
		}, []string{"A box without a network reached a listener of this machine"}, true},
		{"the closed box is on the host's network", func(name string, _ *container.Config, h *container.HostConfig) {
			if strings.HasSuffix(name, "-closed") {
				h.NetworkMode = "host"
			}
		}, []string{"A box without a network reached a neighbour on a bridge network", "listener of this machine"}, true},
		{"capabilities aren't dropped", func(_ string, _ *container.Config, h *container.HostConfig) {
			h.CapDrop = nil
		}, []string{"A box without a network could open a raw packet socket."}, true},
		{"the control has no network", func(name string, _ *container.Config, h *container.HostConfig) {
			if strings.HasSuffix(name, "-control") {
				h.NetworkMode = "none"
			}
		}, []string{"prove nothing", "unreachable"}, false},
		{"the neighbour doesn't listen", func(name string, c *container.Config, _ *container.HostConfig) {
			if strings.HasSuffix(name, "-neighbour") {
				c.Cmd = nil
			}
		}, []string{"prove nothing", "connection refused"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := check(t, cli, &misled{APIClient: cli, create: c.create}, like)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(r.Why[runtime.NoInternet], want) {
					t.Errorf("no_internet: %q, want %q in it", r.Why[runtime.NoInternet], want)
				}
			}
			if slices.Contains(r.Policies, runtime.NoInternet) || r.Switch == "" || slices.Contains(r.Policies, runtime.FullInternet) != c.full {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestAFailedCheckLeavesNothing(t *testing.T) {
	cli := testenv.Docker(t)
	for _, execs := range []int32{0, 2} {
		t.Run(fmt.Sprintf("exec %d fails", execs+1), func(t *testing.T) {
			m := &misled{APIClient: cli}
			m.execs.Store(execs + 1)
			if _, err := check(t, cli, m, like); !errors.Is(err, errNoExec) {
				t.Errorf("%v, want the engine's error", err)
			}
		})
	}
	t.Run("a box can't be started", func(t *testing.T) {
		_, err := check(t, cli, cli, func() (*container.Config, *container.HostConfig) {
			c, h := like()
			c.WorkingDir, h.Binds = "", []string{"/dev/null:" + toolPath + ":ro"}
			return c, h
		})
		if err == nil || !strings.Contains(err.Error(), "start the") {
			t.Errorf("%v, want that a box can't be started", err)
		}
	})
}
