// SPDX-License-Identifier: Apache-2.0

package netcheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"syscall"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
	"github.com/tidemill/tidemill/runtime/docker/internal/subnet"
)

// lab is one check's things at the engine. All have its name in theirs, and its label,
// by which they are found again: the name is random, so the label is nobody else's.
type lab struct {
	api     client.APIClient
	o       Options
	name    string
	imageID string
	network *subnet.Network
}

const labelCheck = "dev.tidemill.netcheck"

func newLab(api client.APIClient, o Options) *lab {
	return &lab{api: api, o: o, name: runtime.NewName()}
}

func (l *lab) labels() map[string]string {
	all := map[string]string{}
	maps.Copy(all, l.o.Labels)
	all[labelCheck] = l.name
	return all
}

// neighbourPort is where the neighbour listens.
const neighbourPort = 7

// observe makes the boxes and lets them try.
func (l *lab) observe(ctx context.Context) (*observation, error) {
	var err error
	if l.imageID, err = l.importImage(ctx); err != nil {
		return nil, err
	}
	if l.network, err = l.o.Subnets.Create(ctx, l.name, l.labels(), subnet.Options{Kind: subnet.Egress}); err != nil {
		return nil, err
	}
	var closed, control, neighbour string
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		closed, err = l.box(groupCtx, "closed", "none", nil)
		return err
	})
	group.Go(func() (err error) {
		control, err = l.box(groupCtx, "control", l.network.ID, func(h *container.HostConfig) {
			h.CapAdd, h.CapDrop = []string{"NET_RAW"}, nil // so that the raw socket can succeed
		})
		return err
	})
	group.Go(func() (err error) {
		arg, err := boxtool.Socket{
			Domain: syscall.AF_INET, Type: syscall.SOCK_STREAM, Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), neighbourPort),
		}.Arg()
		if err != nil {
			return err
		}
		neighbour, err = l.box(groupCtx, "neighbour", l.network.ID, nil, boxtool.Listen, arg)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	at, err := l.addressOf(ctx, neighbour)
	if err != nil {
		return nil, err
	}
	h, err := listen(ctx) // now that the network has its gateway
	if err != nil {
		return nil, err
	}
	defer h.close()
	return l.try(ctx, l.targets(h, at), closed, control)
}

// try runs the probes: in the box without a network, in the control, and in the control
// once more, but for the raw socket that it alone may have, when it is off its network.
func (l *lab) try(ctx context.Context, targets []target, closed, control string) (*observation, error) {
	seen := &observation{targets: targets}
	var err error
	if seen.closed, err = l.probe(ctx, closed, targets); err != nil {
		return nil, err
	}
	if seen.control, err = l.probe(ctx, control, targets); err != nil {
		return nil, err
	}
	if seen.openNetwork() != "" {
		return seen, nil // there is nothing to compare with
	}
	if err := l.api.NetworkDisconnect(ctx, l.network.ID, control, true); err != nil {
		return nil, fmt.Errorf("take the control box off its network: %w", err)
	}
	seen.switched, err = l.probe(ctx, control, targets[:len(targets)-1])
	return seen, err
}

// targets is everything that must not be reached.
func (l *lab) targets(h *host, neighbour netip.Addr) []target {
	wait := l.o.Patience
	name := udp(whatName, embedded, question(l.boxName("neighbour")), wait)
	name.socket.Mask = dnsFailure
	foreign := question(l.name + ".example.com")
	list := []target{tcp(whatNeighbour, netip.AddrPortFrom(neighbour, neighbourPort), wait), name}
	list = append(list, h.targets(wait)...)
	list = append(list,
		tcp("reached the metadata address "+metadata.Addr().String(), metadata, wait),
		tcp("found a way to the internet", internet, wait),
		udp("was answered by the engine's resolver about a foreign name", embedded, foreign, wait))
	for _, ip := range resolvers() {
		list = append(list, udp("reached the name server "+ip.String(), netip.AddrPortFrom(ip, dnsPort), foreign, wait))
	}
	return append(list, packet()) // last, for the control keeps its capability
}

// close removes everything, in a time of its own.
func (l *lab) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.o.Cleanup)
	defer cancel()
	var errs []error
	mine := filters.NewArgs(filters.Arg("label", labelCheck+"="+l.name))
	boxes, err := l.api.ContainerList(ctx, container.ListOptions{All: true, Filters: mine})
	errs = append(errs, err)
	var group errgroup.Group
	for _, b := range boxes {
		group.Go(func() error { return l.removeBox(ctx, b.ID) })
	}
	errs = append(errs, group.Wait())
	if l.network != nil {
		errs = append(errs, l.o.Subnets.Remove(ctx, l.network))
	}
	images, err := l.api.ImageList(ctx, image.ListOptions{Filters: mine})
	errs = append(errs, err)
	for _, i := range images {
		_, err := l.api.ImageRemove(ctx, i.ID, image.RemoveOptions{Force: true, PruneChildren: true})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
