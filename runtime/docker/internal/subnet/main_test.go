// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeEngine keeps networks as the engine does.
type fakeEngine struct {
	mu       sync.Mutex
	networks []network.Summary
	creates  int
	now, max int // requests to create that are being answered, and the most at once
	removed  []string
	// hidden subnets are refused though no list shows them.
	hidden []netip.Prefix
	// during runs while a network is being made, lost is the error that its maker gets
	// in place of the answer, and stuck the error of removing.
	during      func()
	lost, stuck error
	listErr     error
}

func (f *fakeEngine) add(name, subnet string) string {
	id := fmt.Sprintf("id-%d", len(f.networks))
	f.networks = append(f.networks, network.Summary{
		ID: id, Name: name, IPAM: network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}},
	})
	return id
}

func (f *fakeEngine) NetworkCreate(ctx context.Context, name string, o network.CreateOptions) (network.CreateResponse, error) {
	f.mu.Lock()
	f.creates++
	f.now++
	f.max = max(f.max, f.now)
	f.mu.Unlock()
	if f.during != nil {
		f.during()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now--
	want := netip.MustParsePrefix(o.IPAM.Config[0].Subnet)
	taken := slices.Clone(f.hidden)
	for _, n := range f.networks {
		if n.Name == name {
			return network.CreateResponse{}, fmt.Errorf("network with name %s already exists: %w", name, cerrdefs.ErrConflict)
		}
		taken = append(taken, netip.MustParsePrefix(n.IPAM.Config[0].Subnet))
	}
	for _, t := range taken {
		if t.Overlaps(want) {
			return network.CreateResponse{}, fmt.Errorf("Pool overlaps with other one on this address space: %w", cerrdefs.ErrPermissionDenied)
		}
	}
	id := f.add(name, want.String())
	f.networks[len(f.networks)-1].Labels = o.Labels
	if ctx.Err() != nil {
		return network.CreateResponse{}, ctx.Err()
	}
	return network.CreateResponse{ID: id}, f.lost
}

func (f *fakeEngine) NetworkList(_ context.Context, o network.ListOptions) ([]network.Summary, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []network.Summary
	for _, n := range f.networks {
		labels := o.Filters.Get("label")
		for _, l := range labels {
			k, v, _ := strings.Cut(l, "=")
			if n.Labels[k] == v {
				list = append(list, n)
			}
		}
		if len(labels) == 0 {
			list = append(list, n)
		}
	}
	return list, f.listErr
}

func (f *fakeEngine) NetworkRemove(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stuck != nil {
		return f.stuck
	}
	for i, n := range f.networks {
		if n.ID == id {
			f.networks = append(f.networks[:i], f.networks[i+1:]...)
			f.removed = append(f.removed, n.Name)
			return nil
		}
	}
	return fmt.Errorf("no such network: %w", cerrdefs.ErrNotFound)
}

// pool makes one of 8 subnets over a host with these routes.
func pool(t *testing.T, f *fakeEngine, routes ...string) *Pool {
	t.Helper()
	p, err := New(f, Config{Range: netip.MustParsePrefix("10.213.0.0/26")})
	if err != nil {
		t.Fatal(err)
	}
	p.routes = func() ([]netip.Prefix, error) {
		var list []netip.Prefix
		for _, r := range routes {
			list = append(list, netip.MustParsePrefix(r))
		}
		return list, nil
	}
	return p
}
