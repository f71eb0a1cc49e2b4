// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/docker/docker/api/types/container"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/subnet"
)

// networkFacts are what is known of a sandbox's own network.
type networkFacts struct {
	Name   string `json:"name,omitempty"`
	Subnet string `json:"subnet,omitempty"`
}

// online reports whether a phase may reach the internet.
func online(spec runtime.Spec, p runtime.Phase) bool {
	n, _ := spec.NetworkFor(p)
	return n.Policy == runtime.FullInternet
}

// needsNetwork reports whether any phase has a network. Where none has, the container has
// none for good: that can't be undone, which is the best reason for it.
func (o *opening) needsNetwork() bool {
	return slices.ContainsFunc(phases, func(p runtime.Phase) bool { return online(o.spec, p) })
}

// makeNetwork makes a bridge of the sandbox's own, so that trials don't meet on one. Its
// name is not what claims the trial's: it has a part of the nonce.
func (o *opening) makeNetwork(ctx context.Context) error {
	const longest, digits = 100, 8
	trial := o.estate.Name[:min(len(o.estate.Name), longest-digits-1)]
	n, err := o.rt.subnets.Create(ctx, subnet.Name(trial, o.estate.Nonce[:digits]), o.estate.mark(), subnet.Options{Kind: subnet.Egress})
	if err != nil {
		return err
	}
	o.net = n
	o.box.Network, o.box.Facts = n.ID, networkFacts{Name: n.Name, Subnet: n.Subnet.String()}
	return nil
}

// applyNetwork connects the container to its network or takes it off, as the phase wants
// it, and looks whether that is so.
func (s *Sandbox) applyNetwork(ctx context.Context, p runtime.Phase) error {
	if s.box.Network == "" {
		return nil // it has none, in every phase
	}
	e, want := s.rt.engine, online(s.spec, p)
	has, err := s.connected(ctx)
	if err != nil {
		return err
	}
	if has == want {
		return nil
	}
	// A switch that was begun is ended: half of one is neither policy.
	ctx = context.WithoutCancel(ctx)
	if want {
		_, err = slow(ctx, e, "connect network", just(func(ctx context.Context) error {
			return e.NetworkConnect(ctx, s.box.Network, s.box.ID, nil)
		}))
	} else {
		_, err = slow(ctx, e, "disconnect network", just(func(ctx context.Context) error {
			return e.NetworkDisconnect(ctx, s.box.Network, s.box.ID, true)
		}))
	}
	if err != nil {
		return s.lostOr(ctx, err)
	}
	if has, err = s.connected(ctx); err == nil && has != want {
		err = fmt.Errorf("the engine switched the network of container %s, and it is still connected: %v", s.box.ID, has)
	}
	return err
}

// connected tells whether the container is on its network. On any other it must not be.
func (s *Sandbox) connected(ctx context.Context) (bool, error) {
	info, err := quick(ctx, s.rt.engine, "inspect container", func(ctx context.Context) (container.InspectResponse, error) {
		return s.rt.engine.ContainerInspect(ctx, s.box.ID)
	})
	if err != nil {
		return false, s.lostOr(ctx, err)
	}
	has := false
	for _, name := range slices.Sorted(maps.Keys(info.NetworkSettings.Networks)) {
		at := info.NetworkSettings.Networks[name]
		switch {
		case name == s.box.Network || name == s.box.Facts.Name && (at == nil || at.NetworkID == "") || at != nil && at.NetworkID == s.box.Network:
			has = true
		default:
			return false, fmt.Errorf("container %s is on network %s, which isn't its own", s.box.ID, name)
		}
	}
	return has, nil
}

// SetPhase switches to the phase's network and user. What runs inside keeps running, and
// loses its connections with the network.
func (s *Sandbox) SetPhase(ctx context.Context, p runtime.Phase) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if !slices.Contains(phases, p) {
		return fmt.Errorf("phase %q: want %s, %s or %s", p, runtime.Setup, runtime.Agent, runtime.Grade)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.power.Lock()
	defer s.power.Unlock()
	if err := s.applyNetwork(ctx, p); err != nil {
		return fmt.Errorf("sandbox %s: network of the %s phase: %w", s.estate.Name, p, err)
	}
	s.mu.Lock()
	s.phase = p
	s.mu.Unlock()
	return nil
}

// Endpoint returns where the engine's machine reaches a port of the container: it has an
// address only in a phase with a network.
func (s *Sandbox) Endpoint(ctx context.Context, service string, port int) (string, error) {
	if err := s.enter(); err != nil {
		return "", err
	}
	defer s.leave()
	if err := checkService(service); err != nil {
		return "", err
	}
	info, err := quick(ctx, s.rt.engine, "inspect container", func(ctx context.Context) (container.InspectResponse, error) {
		return s.rt.engine.ContainerInspect(ctx, s.box.ID)
	})
	if err != nil {
		return "", s.lostOr(ctx, err)
	}
	for _, at := range info.NetworkSettings.Networks {
		if at != nil && at.NetworkID == s.box.Network && at.IPAddress != "" {
			return fmt.Sprintf("%s:%d", at.IPAddress, port), nil
		}
	}
	return "", errors.Join(refuse("endpoint", fmt.Sprint(port), "a phase with full_internet"), errNoAddress)
}

var errNoAddress = errors.New("the container has no address in this phase")
