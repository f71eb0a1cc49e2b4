// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Config is how a pool is set up. Zero fields mean their defaults.
type Config struct {
	// Range is what subnets are cut from: IPv4, private. Default 10.213.0.0/16.
	Range netip.Prefix
	// Bits is the length of a subnet's prefix, 16 to 29. Default 29: five containers
	// beside the network, the gateway's and the broadcast address.
	Bits int
	// Timeout bounds one request to the engine, which answers others before. Default
	// 2 min.
	Timeout time.Duration
}

// WithDefaults returns a completed copy.
func (c Config) WithDefaults() Config {
	if !c.Range.IsValid() {
		c.Range = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 213, 0, 0}), 16)
	}
	c.Bits = cmp.Or(c.Bits, 29)
	c.Timeout = cmp.Or(c.Timeout, 2*time.Minute)
	return c
}

// maxSubnets bounds the memory of a pool, and the time of going through it.
const maxSubnets = 1 << 16

// Validate reports everything that is wrong with a completed configuration.
func (c Config) Validate() error {
	var errs []error
	r := c.Range
	switch {
	case !r.Addr().Is4() || !r.Addr().IsPrivate():
		errs = append(errs, fmt.Errorf("subnet range %s: want a private IPv4 range such as 10.213.0.0/16", r))
	case r != r.Masked():
		errs = append(errs, fmt.Errorf("subnet range %s has bits beyond its length: want %s", r, r.Masked()))
	case c.Bits < 16 || c.Bits > 29:
		errs = append(errs, fmt.Errorf("subnet bits is %d: want 16 to 29", c.Bits))
	case c.Bits < r.Bits():
		errs = append(errs, fmt.Errorf("subnet bits is %d: want %d or more, the length of the range %s", c.Bits, r.Bits(), r))
	case 1<<(c.Bits-r.Bits()) > maxSubnets:
		errs = append(errs, fmt.Errorf("range %s has more than %d subnets of /%d: want a smaller range or larger subnets", r, maxSubnets, c.Bits))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("subnet timeout is %v: want more than 0", c.Timeout))
	}
	return errors.Join(errs...)
}
