// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"github.com/tidemill/tidemill/runtime"
)

var errBudget = errors.New("the time for it is over")

// removeContainer removes a container in any state, with its anonymous volumes, and
// returns when it is gone.
func (e *engine) removeContainer(ctx context.Context, id string) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		_, err := slow(ctx, e, "remove container", just(func(ctx context.Context) error {
			return e.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		}))
		if err == nil || isGone(err) {
			return nil // the engine answers when it has removed it
		}
		if !isConflict(err) { // a conflict is a removal that is under way
			return err
		}
		_, err = quick(ctx, e, "inspect container", func(ctx context.Context) (container.InspectResponse, error) {
			return e.ContainerInspect(ctx, id)
		})
		if isGone(err) {
			return nil
		}
		if err := pause(ctx, wait); err != nil {
			return fmt.Errorf("container %s is still there: %w", id, err)
		}
	}
}

// destroyBox removes what a sandbox that came up has: it is all known, so nothing has to be
// looked for.
func (r *Runtime) destroyBox(ctx context.Context, box boxFacts) error {
	errs := []error{r.engine.removeContainer(ctx, box.ID)}
	if box.Network != "" {
		errs = append(errs, r.engine.removeNetwork(ctx, box.Network))
	}
	if box.Volume != "" {
		errs = append(errs, r.engine.removeVolume(ctx, box.Volume))
	}
	return errors.Join(errs...)
}

// destroyEstate removes a container by its id, if there is one, and everything else that
// has the nonce. Each is tried whatever becomes of the others, but for the order: what a
// container uses can't go before it.
func (r *Runtime) destroyEstate(ctx context.Context, id, nonce string) error {
	var errs []error
	if id != "" {
		errs = append(errs, r.engine.removeContainer(ctx, id))
	}
	if nonce == "" {
		return errors.Join(errs...)
	}
	e := r.engine
	containers, err := quick(ctx, e, "list containers", func(ctx context.Context) ([]container.Summary, error) {
		return e.ContainerList(ctx, container.ListOptions{All: true, Filters: of(nonce)})
	})
	errs = append(errs, err)
	for _, c := range containers {
		if c.ID != id {
			errs = append(errs, e.removeContainer(ctx, c.ID))
		}
	}
	networks, err := quick(ctx, e, "list networks", func(ctx context.Context) ([]network.Summary, error) {
		return e.NetworkList(ctx, network.ListOptions{Filters: of(nonce)})
	})
	errs = append(errs, err)
	for _, n := range networks {
		errs = append(errs, e.removeNetwork(ctx, n.ID))
	}
	volumes, err := quick(ctx, e, "list volumes", func(ctx context.Context) (volume.ListResponse, error) {
		return e.VolumeList(ctx, volume.ListOptions{Filters: of(nonce)})
	})
	errs = append(errs, err)
	for _, v := range volumes.Volumes {
		errs = append(errs, e.removeVolume(ctx, v.Name))
	}
	return errors.Join(errs...)
}

func (e *engine) removeNetwork(ctx context.Context, id string) error {
	return e.untilFree(ctx, "remove network", func(ctx context.Context) error { return e.NetworkRemove(ctx, id) })
}

func (e *engine) removeVolume(ctx context.Context, name string) error {
	return e.untilFree(ctx, "remove volume", func(ctx context.Context) error { return e.VolumeRemove(ctx, name, true) })
}

// untilFree tries again while a container that is being removed still uses the thing.
func (e *engine) untilFree(ctx context.Context, what string, remove func(context.Context) error) error {
	for wait := 20 * time.Millisecond; ; wait *= 2 {
		_, err := slow(ctx, e, what, just(remove))
		if err == nil || isGone(err) {
			return nil
		}
		inUse := isConflict(err) || strings.Contains(err.Error(), "active endpoints")
		if !inUse || wait > 2*time.Second {
			return err
		}
		if pause(ctx, wait) != nil {
			return err
		}
	}
}

// Kinds of handles.
const (
	kindContainer = "container"
	kindNetwork   = "network"
	kindVolume    = "volume"
)

func handle(kind, id string) runtime.Handle { return runtime.Handle{Runtime: Type, Kind: kind, ID: id} }
