// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// A VPN's routes are often in a table of their own, and the engine looks at none.
func TestHostRoutesOfAnotherTable(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("adding a route needs root")
	}
	route := []string{"route", "add", "unreachable", "10.213.251.8/29", "table", "20213"}
	if out, err := exec.CommandContext(t.Context(), "ip", route...).CombinedOutput(); err != nil {
		t.Skipf("a route can't be added: ip: %v: %s", err, out)
	}
	t.Cleanup(func() {
		route[1] = "del"
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "ip", route...).CombinedOutput(); err != nil {
			t.Errorf("ip route del: %v: %s", err, out)
		}
	})
	p, err := New(&fakeEngine{}, Config{Range: netip.MustParsePrefix("10.213.251.0/28")})
	if err != nil {
		t.Fatal(err)
	}
	subnets, _, end := take(t, p)
	if !slices.Equal(subnets, []string{"10.213.251.0/29"}) || end.Host != 1 {
		t.Errorf("reserved %v, then %v; want the subnet without a route", subnets, end)
	}
}
