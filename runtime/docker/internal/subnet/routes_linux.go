// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"fmt"
	"net/netip"
	"syscall"
)

// hostRoutes returns the destinations of the IPv4 routes in every table: a VPN's routes
// often have one of their own. Left out are default routes, also those in two halves:
// they lead everywhere and so say nothing about the pool.
func hostRoutes() ([]netip.Prefix, error) {
	rib, err := syscall.NetlinkRIB(syscall.RTM_GETROUTE, syscall.AF_INET)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseNetlinkMessage(rib)
	if err != nil {
		return nil, err
	}
	var routes []netip.Prefix
	for _, m := range messages {
		// The data begins with family, length of the destination, and ten bytes more.
		if m.Header.Type != syscall.RTM_NEWROUTE || len(m.Data) < syscall.SizeofRtMsg || m.Data[0] != syscall.AF_INET {
			continue
		}
		bits := int(m.Data[1])
		attrs, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil {
			return nil, fmt.Errorf("a route of the kernel's: %w", err)
		}
		for _, a := range attrs {
			if a.Attr.Type != syscall.RTA_DST {
				continue
			}
			addr, ok := netip.AddrFromSlice(a.Value)
			if !ok {
				return nil, fmt.Errorf("a route of the kernel's has a destination of %d bytes", len(a.Value))
			}
			if prefix := netip.PrefixFrom(addr, bits); bits > 1 {
				routes = append(routes, prefix)
			}
		}
	}
	return routes, nil
}
