// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"fmt"
	"net"
	"net/netip"
)

// check looks at the network's interface on the host, where it can be seen: an engine
// that takes an option and doesn't do it must not go unnoticed.
func (n *Network) check(o Options) error {
	if !o.NoHostAddress {
		return nil
	}
	bridge, err := net.InterfaceByName(n.Bridge)
	if err != nil {
		return nil // the engine's host isn't this machine
	}
	addrs, err := bridge.Addrs()
	if err != nil {
		return fmt.Errorf("network %s: addresses of %s: %w", n.Name, n.Bridge, err)
	}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			return fmt.Errorf("network %s: the host has the address %s in it, although the engine was asked for none (inhibit_ipv4)", n.Name, prefix)
		}
	}
	return nil
}
