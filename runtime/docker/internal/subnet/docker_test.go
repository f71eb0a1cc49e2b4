// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"

	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/runtime"
)

// realPool is a pool at the engine; smallest makes it a single subnet.
func realPool(t *testing.T, cli *client.Client, rng string) *Pool {
	t.Helper()
	p, err := New(cli, Config{Range: netip.MustParsePrefix(rng)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func create(t *testing.T, p *Pool, name string, o Options) *Network {
	t.Helper()
	n, err := p.Create(t.Context(), name, map[string]string{"dev.tidemill.test": t.Name()}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Remove(context.WithoutCancel(t.Context()), n); err != nil {
			t.Error(err)
		}
	})
	return n
}

func TestNetworkOfTheEngine(t *testing.T) {
	cli := testenv.Docker(t)
	p := realPool(t, cli, "10.213.248.0/24")
	name := runtime.NewName()
	plain := create(t, p, name, Options{Kind: Egress})
	closed := create(t, p, Name(name, "inner"), Options{Internal: true, NoHostAddress: true})
	if plain.Subnet == closed.Subnet || plain.Subnet.Bits() != 29 || !p.cfg.Range.Contains(closed.Subnet.Addr()) {
		t.Errorf("subnets %s and %s: want two of /29 in %s", plain.Subnet, closed.Subnet, p.cfg.Range)
	}
	for _, c := range []struct {
		n        *Network
		internal bool
		inhibit  string
	}{{plain, false, ""}, {closed, true, "true"}} {
		got, err := cli.NetworkInspect(t.Context(), c.n.ID, network.InspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != c.n.Name || got.Driver != "bridge" || got.Internal != c.internal || got.EnableIPv6 ||
			got.Labels["dev.tidemill.test"] != t.Name() || got.IPAM.Config[0].Subnet != c.n.Subnet.String() ||
			got.Options["com.docker.network.bridge.inhibit_ipv4"] != c.inhibit || got.Options["com.docker.network.bridge.name"] != c.n.Bridge {
			t.Errorf("%s: the engine has %+v", c.n.Name, got)
		}
	}

	_, err := p.Create(t.Context(), name, nil, Options{})
	var conflict *runtime.ConflictError
	if !errors.As(err, &conflict) || conflict.Owner.ID != plain.ID {
		t.Errorf("a second network of the name: %v, want a conflict with %s", err, plain.ID)
	}
	if err := p.Remove(t.Context(), closed); err != nil {
		t.Error(err)
	}
	if _, err := cli.NetworkInspect(t.Context(), closed.ID, network.InspectOptions{}); !cerrdefs.IsNotFound(err) {
		t.Errorf("after removing it: %v, want not found", err)
	}
}

// Two processes with one range, as the engine sees them: each has a pool of its own. The
// second looked before the first made its network.
func TestTheEngineDecidesBetweenProcesses(t *testing.T) {
	cli := testenv.Docker(t)
	first, second := realPool(t, cli, "10.213.249.0/28"), realPool(t, cli, "10.213.249.0/28")
	first.next, second.next = 0, 0
	stale := staleList{API: cli}
	second.api = &stale
	if err := second.Look(t.Context()); err != nil { // the list that it goes on with
		t.Fatal(err)
	}
	a := create(t, first, runtime.NewName(), Options{})
	b := create(t, second, runtime.NewName(), Options{})
	if a.Subnet.Overlaps(b.Subnet) {
		t.Errorf("both have %s", a.Subnet)
	}
	_, err := first.Create(t.Context(), runtime.NewName(), nil, Options{})
	var end *ExhaustedError
	if !errors.As(err, &end) || end.Reserved != 1 || end.Engine != 1 {
		t.Errorf("%v, want that both subnets are taken, one by another", err)
	}
}

// staleList answers with the first list again and again.
type staleList struct {
	API
	once sync.Once
	list []network.Summary
	err  error
}

func (s *staleList) NetworkList(ctx context.Context, o network.ListOptions) ([]network.Summary, error) {
	s.once.Do(func() { s.list, s.err = s.API.NetworkList(ctx, o) })
	return s.list, s.err
}

// The engine takes a subnet over a route of the host without a word.
func TestHostRoutesHaveTheMachinesOwn(t *testing.T) {
	routes, err := hostRoutes()
	if err != nil {
		t.Fatal(err)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var addrs []net.Addr
	for _, i := range interfaces {
		if strings.HasPrefix(i.Name, "br-") {
			continue // Networks of containers come and go with other tests.
		}
		of, err := i.Addrs()
		if err != nil {
			continue // It went in this moment.
		}
		addrs = append(addrs, of...)
	}
	for _, a := range addrs {
		own, err := netip.ParsePrefix(a.String())
		if err != nil || !own.Addr().Is4() || len(routes) == 0 {
			continue
		}
		found := false
		for _, r := range routes {
			if r.Bits() < 2 {
				t.Errorf("%s leads everywhere", r)
			}
			found = found || r.Contains(own.Addr())
		}
		if !found {
			t.Errorf("no route to %s in %v", own, routes)
		}
	}
}
