// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

// take reserves all that there is.
func take(t *testing.T, p *Pool) (subnets []string, releases []func(), end *ExhaustedError) {
	t.Helper()
	for {
		s, release, err := p.Reserve(t.Context())
		if errors.As(err, &end) {
			slices.Sort(subnets)
			return subnets, releases, end
		}
		if err != nil {
			t.Fatal(err)
		}
		subnets, releases = append(subnets, s.String()), append(releases, release)
	}
}

func TestReserve(t *testing.T) {
	all := []string{
		"10.213.0.0/29", "10.213.0.16/29", "10.213.0.24/29", "10.213.0.32/29",
		"10.213.0.40/29", "10.213.0.48/29", "10.213.0.56/29", "10.213.0.8/29",
	}
	without := func(gone ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(gone, s) })
	}
	for _, c := range []struct {
		name             string
		routes, networks []string
		want             []string
		capacity         int
	}{
		{"an empty machine", nil, nil, all, 8},
		{"routes and networks elsewhere", []string{"10.212.0.0/16", "10.213.0.64/26"}, []string{"172.17.0.0/16", "fd00::/64"}, all, 8},
		{"a route to one address", []string{"10.213.0.17/32"}, nil, without("10.213.0.16/29"), 7},
		{"a route to a subnet", []string{"10.213.0.56/29"}, nil, without("10.213.0.56/29"), 7},
		{"a route to several", []string{"10.213.0.32/27"}, nil, without("10.213.0.32/29", "10.213.0.40/29", "10.213.0.48/29", "10.213.0.56/29"), 4},
		{"a route to all of the range and more", []string{"10.0.0.0/8"}, nil, nil, 0},
		{"a network of somebody's", nil, []string{"10.213.0.0/28"}, without("10.213.0.0/29", "10.213.0.8/29"), 8},
		{"a network and its route", []string{"10.213.0.0/29", "10.213.0.1/32"}, []string{"10.213.0.0/29"}, without("10.213.0.0/29"), 8},
		{"a network around the range", nil, []string{"10.213.0.0/16"}, nil, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeEngine{}
			for _, n := range c.networks {
				f.add(n, n)
			}
			p := pool(t, f, c.routes...)
			if err := p.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			if free := p.Free(); free != len(c.want) || p.Capacity() != c.capacity {
				t.Errorf("free %d, want %d; capacity %d, want %d", free, len(c.want), p.Capacity(), c.capacity)
			}
			got, releases, end := take(t, p)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("reserved %v, want %v", got, c.want)
			}
			if !errors.Is(end, runtime.ErrCapacity) {
				t.Errorf("%v isn't ErrCapacity", end)
			}
			if p.Free() != 0 || p.Capacity() != c.capacity {
				t.Errorf("all reserved: free %d, capacity %d, want 0 and %d", p.Free(), p.Capacity(), c.capacity)
			}
			for _, r := range releases {
				r()
				r()
			}
			if free := p.Free(); free != len(c.want) {
				t.Errorf("all released: free %d, want %d", free, len(c.want))
			}
		})
	}
}

func TestASubnetIsNotUsedAgainAtOnce(t *testing.T) {
	p := pool(t, &fakeEngine{})
	seen := map[string]bool{}
	for range 8 {
		s, release, err := p.Reserve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release()
		seen[s.String()] = true
	}
	if len(seen) != 8 {
		t.Errorf("8 reservations one after the other used %d subnets, want all 8", len(seen))
	}
}

func TestExhaustedErrorSaysWhoHasThem(t *testing.T) {
	f := &fakeEngine{}
	f.add("x", "10.213.0.0/28")
	p := pool(t, f, "10.213.0.56/29")
	_, _, end := take(t, p)
	want := "no subnet left: of 8 subnets of /29 in 10.213.0.0/26 this process uses 5, other networks of the engine 2, and routes of the host 1"
	if end.Error() != want {
		t.Errorf("%s\nwant %s", end, want)
	}
	_, _, end = take(t, pool(t, &fakeEngine{}, "10.0.0.0/8"))
	if !strings.Contains(end.Error(), "choose another range") {
		t.Errorf("%s: want advice", end)
	}
}

func TestReserveFailsWhenItCannotLook(t *testing.T) {
	broken := errors.New("broken")
	if _, _, err := pool(t, &fakeEngine{listErr: broken}).Reserve(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v, want the engine's error", err)
	}
	p := pool(t, &fakeEngine{})
	p.routes = func() ([]netip.Prefix, error) { return nil, broken }
	if _, _, err := p.Reserve(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v, want the error of reading routes", err)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		rng  string
		bits int
		want string
	}{
		{"10.213.0.0/16", 29, ""},
		{"192.168.0.0/24", 24, ""},
		{"10.213.0.0/16", 30, "16 to 29"},
		{"10.213.0.0/16", 8, "16 to 29"},
		{"10.213.0.0/24", 20, "24 or more"},
		{"10.213.1.0/16", 29, "want 10.213.0.0/16"},
		{"8.8.0.0/16", 29, "private"},
		{"fd00::/64", 29, "private IPv4"},
		{"10.0.0.0/8", 29, "more than 65536 subnets"},
	} {
		_, err := New(&fakeEngine{}, Config{Range: netip.MustParsePrefix(c.rng), Bits: c.bits})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of /%d: %v, want %q", c.rng, c.bits, err, c.want)
		}
	}
	if _, err := New(&fakeEngine{}, Config{Timeout: -1}); err == nil {
		t.Error("a negative timeout was accepted")
	}
	p, err := New(&fakeEngine{}, Config{})
	if err != nil || p.cfg.Range.String() != "10.213.0.0/16" || len(p.reserved) != 8192 {
		t.Errorf("defaults: %v, %d subnets of %s", err, len(p.reserved), p.cfg.Range)
	}
}
