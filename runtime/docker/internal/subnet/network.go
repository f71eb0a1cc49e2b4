// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"

	"github.com/tidemill/tidemill/runtime"
)

// Kind tells networks apart by the name of their bridge, which a firewall's rules may
// match by prefix.
type Kind string

// The kinds of networks.
const (
	// Inner networks connect what belongs to one trial.
	Inner Kind = "tmn"
	// Egress networks lead out.
	Egress Kind = "tme"
)

// Options is what a network is like. IPv6 is always off, and containers in one network
// always reach each other.
type Options struct {
	Kind Kind // default Inner
	// Internal cuts the network off from everything but the host itself.
	Internal bool
	// NoHostAddress gives the host no address in the network. An internal network
	// without it still reaches every listener of the host.
	NoHostAddress bool
	// Driver options beyond those.
	Driver map[string]string
}

// Network is a network that [Pool.Create] made.
type Network struct {
	ID, Name, Bridge string
	Subnet           netip.Prefix

	release func()
}

// Name is how the network of a trial is called: like the trial, and with a word behind
// it where the trial has several.
func Name(trial, word string) string {
	if word == "" {
		return trial
	}
	return trial + "-" + word
}

// Bridge is the name of a network's interface on the host: the kind and 12 hexadecimal
// digits of the name's sha256. The kernel allows 15 characters.
func Bridge(kind Kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return string(kind) + hex.EncodeToString(sum[:6])
}

// labelMade marks one request, so that what it made is found when its answer is lost.
const labelMade = "dev.tidemill.network-request"

// refusals is how often the engine may refuse a subnet that looked free. Another process
// took it in between, once in a while; the engine's books are wrong, if it goes on.
const refusals = 32

// Create makes a bridge network with the labels and a subnet of the pool. A name that is
// taken is a [runtime.ConflictError]; no free subnet is [runtime.ErrCapacity].
//
// A failed Create leaves nothing. So does one whose context ends: it returns when the
// engine has answered and what it made is removed.
func (p *Pool) Create(ctx context.Context, name string, labels map[string]string, o Options) (*Network, error) {
	if err := runtime.CheckName(name); err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	if o.Kind == "" {
		o.Kind = Inner
	}
	var refused error
	for range refusals {
		n, err := p.try(ctx, name, labels, o)
		if !overlaps(err) {
			return n, err
		}
		refused = err
	}
	return nil, fmt.Errorf("network %s: the engine refused %d subnets that nobody seems to use, the last with: %w: %w",
		name, refusals, refused, runtime.ErrCapacity)
}

func overlaps(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "pool overlaps with other one")
}

// try makes the network with one subnet.
func (p *Pool) try(ctx context.Context, name string, labels map[string]string, o Options) (*Network, error) {
	if err := p.enter(ctx); err != nil {
		return nil, err
	}
	defer p.leave()
	subnet, release, err := p.Reserve(ctx)
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", name, err)
	}
	n := &Network{Name: name, Bridge: Bridge(o.Kind, name), Subnet: subnet, release: release}
	request := rand.Text()
	detached, cancel := p.detach(ctx)
	defer cancel()
	made, err := p.api.NetworkCreate(detached, name, n.request(labels, request, o))
	if err != nil {
		err = errors.Join(p.explain(detached, n, err), p.forget(ctx, n, request, err))
		return nil, err
	}
	n.ID = made.ID
	if err := n.check(o); err != nil {
		return nil, errors.Join(err, p.remove(ctx, n))
	}
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), p.remove(ctx, n))
	}
	return n, nil
}

// request is what the engine is asked for.
func (n *Network) request(labels map[string]string, request string, o Options) network.CreateOptions {
	off := false
	opts := map[string]string{}
	maps.Copy(opts, o.Driver)
	opts["com.docker.network.bridge.name"] = n.Bridge
	opts["com.docker.network.bridge.enable_icc"] = "true"
	if o.NoHostAddress {
		opts["com.docker.network.bridge.inhibit_ipv4"] = "true"
	}
	all := map[string]string{labelMade: request}
	maps.Copy(all, labels)
	return network.CreateOptions{
		Driver: "bridge", Internal: o.Internal, EnableIPv6: &off, Options: opts, Labels: all,
		IPAM: &network.IPAM{Driver: "default", Config: []network.IPAMConfig{{Subnet: n.Subnet.String()}}},
	}
}

// explain says what was asked for, and who has the name where that is the reason.
func (p *Pool) explain(ctx context.Context, n *Network, err error) error {
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case cerrdefs.IsConflict(err):
		named, lookErr := p.api.NetworkList(ctx, network.ListOptions{Filters: filters.NewArgs(filters.Arg("name", "^"+n.Name+"$"))})
		for _, other := range named {
			if lookErr == nil && other.Name == n.Name {
				return &runtime.ConflictError{Name: n.Name, Owner: runtime.Handle{Runtime: "docker", Kind: "network", ID: other.ID}}
			}
		}
	}
	return fmt.Errorf("make network %s with subnet %s: %w", n.Name, n.Subnet, err)
}

// forget removes what a failed request may have made, found by the request's label, and
// gives the subnet back. Only an error that isn't the engine's own answer leaves that
// open.
func (p *Pool) forget(ctx context.Context, n *Network, request string, failed error) error {
	if isAnswer(failed) {
		n.release()
		return nil
	}
	ctx, cancel := p.detach(ctx)
	defer cancel()
	made, err := p.api.NetworkList(ctx, network.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelMade+"="+request))})
	if err != nil {
		// The subnet stays reserved: it may be in use.
		return fmt.Errorf("network %s may have been made all the same: list the engine's networks: %w", n.Name, err)
	}
	var errs []error
	for _, m := range made {
		if err := p.api.NetworkRemove(ctx, m.ID); err != nil && !cerrdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove network %s (%s): %w", n.Name, m.ID, err))
		}
	}
	if len(errs) == 0 {
		n.release()
	}
	return errors.Join(errs...)
}

// isAnswer tells what the engine said from a connection that failed.
func isAnswer(err error) bool {
	return overlaps(err) || cerrdefs.IsConflict(err) || cerrdefs.IsInvalidArgument(err) || cerrdefs.IsPermissionDenied(err) ||
		cerrdefs.IsNotFound(err) || cerrdefs.IsNotImplemented(err) || cerrdefs.IsUnauthorized(err)
}

// Remove removes the network and gives its subnet back. One that is gone already is no
// error, nor is a second call. It has a time of its own, whatever ctx says. A network
// that a container is still in is an error, and its subnet stays taken.
func (p *Pool) Remove(ctx context.Context, n *Network) error {
	p.gate <- struct{}{} // whoever holds the gate has a timeout
	defer p.leave()
	return p.remove(ctx, n)
}

// remove is for those who are through the gate.
func (p *Pool) remove(ctx context.Context, n *Network) error {
	ctx, cancel := p.detach(ctx)
	defer cancel()
	if err := p.api.NetworkRemove(ctx, n.ID); err != nil && !cerrdefs.IsNotFound(err) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("remove network %s (%s): %w", n.Name, n.ID, err)
	}
	n.release()
	return nil
}

func (p *Pool) enter(ctx context.Context) error {
	select {
	case p.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Pool) leave() { <-p.gate }

// detach gives a request the pool's time, whatever happens to ctx.
func (p *Pool) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), p.cfg.Timeout,
		fmt.Errorf("the engine gave no answer for %v", p.cfg.Timeout.Round(time.Millisecond)))
}
