// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package subnet

import "net/netip"

// hostRoutes is empty: engines run on Linux, so this machine isn't the engine's host.
func hostRoutes() ([]netip.Prefix, error) { return nil, nil }
