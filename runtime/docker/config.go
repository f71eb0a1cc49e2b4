// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/client"

	"github.com/tidemill/tidemill/runtime/docker/internal/images"
	"github.com/tidemill/tidemill/runtime/docker/internal/subnet"
)

// Config is how a [Runtime] is set up. Zero fields mean their defaults.
type Config struct {
	// Dir is the runtime's own directory: owner records, the tool for the boxes, and
	// copies on their way. It is made, for this user only, where it is missing; its
	// parent must exist. Required.
	Dir string
	// Store is the uuid of the store that sandboxes are made for. Only what belongs to
	// it is listed, destroyed or taken over. Required.
	Store string
	// Client are options for the engine's client, beside the negotiation of the API's
	// version. Default: what the environment says (DOCKER_HOST and its kin).
	Client []client.Opt
	// Images is how images are pulled and built.
	Images images.Config
	// Subnets is what sandboxes' own networks get their addresses from.
	Subnets subnet.Config
	// Call bounds one request that the engine answers at once. Default 30 s.
	Call time.Duration
	// Slow bounds one request that takes work: create, start, remove, copy. Default
	// 2 min.
	Slow time.Duration
	// Kill is how long the tool in the box may take to kill everything before the box
	// is stopped and started. Default 2 s.
	Kill time.Duration
	// OutputGrace is how long output is read on after a command ended while one of its
	// children keeps its streams open. Default 500 ms.
	OutputGrace time.Duration
	// Ready is the time that Open has where the spec names none. It starts when the image
	// is there. Default 5 min.
	Ready time.Duration
	// Close is the time that Sandbox.Close has, whatever its context says. Default 2 min.
	Close time.Duration
	// SkippedCap is how many entries a copy's report of what it left out names; all
	// are counted. Default 1000.
	SkippedCap int
	// ReadPast bounds the bytes of what a copy leaves out: the engine sends a file whole
	// or not at all. Default 4 GiB.
	ReadPast int64
}

// WithDefaults returns a completed copy.
func (c Config) WithDefaults() Config {
	c.Call = cmp.Or(c.Call, 30*time.Second)
	c.Slow = cmp.Or(c.Slow, 2*time.Minute)
	c.Kill = cmp.Or(c.Kill, 2*time.Second)
	c.OutputGrace = cmp.Or(c.OutputGrace, 500*time.Millisecond)
	c.Subnets.Timeout = cmp.Or(c.Subnets.Timeout, c.Slow)
	c.Ready = cmp.Or(c.Ready, 5*time.Minute)
	c.Close = cmp.Or(c.Close, 2*time.Minute)
	c.SkippedCap = cmp.Or(c.SkippedCap, 1000)
	c.ReadPast = cmp.Or(c.ReadPast, 4<<30)
	return c
}

// Validate reports everything that is wrong with a completed configuration.
func (c Config) Validate() error {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("docker dir is empty: want a directory of the runtime's own"))
	}
	if c.Store == "" {
		errs = append(errs, errors.New("docker store is empty: want the uuid of the store"))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"call", c.Call},
		{"slow", c.Slow},
		{"kill", c.Kill},
		{"output grace", c.OutputGrace},
		{"ready", c.Ready},
		{"close", c.Close},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("docker %s timeout is %v: want more than 0", d.name, d.value))
		}
	}
	if c.SkippedCap < 0 {
		errs = append(errs, fmt.Errorf("docker skipped cap is %d: want 1 or more", c.SkippedCap))
	}
	if c.ReadPast < 0 {
		errs = append(errs, fmt.Errorf("docker read past is %d bytes: want more than 0", c.ReadPast))
	}
	return errors.Join(errs...)
}
