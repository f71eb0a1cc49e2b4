// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"github.com/tidemill/tidemill/runtime"
)

// List returns the store's containers, in any state, and the networks and volumes that
// have no container any more; those of one that is there go with it. An owner on another
// machine, or whose record can't be seen from here, is taken for alive until the expiry.
func (r *Runtime) List(ctx context.Context) ([]runtime.Resource, error) {
	e, filter, now := r.engine, ours(r.cfg.Store), time.Now()
	containers, err := quick(ctx, e, "list containers", func(ctx context.Context) ([]container.Summary, error) {
		return e.ContainerList(ctx, container.ListOptions{All: true, Filters: filter})
	})
	if unreachable := (*unreachableError)(nil); errors.As(err, &unreachable) && r.neverUsed() {
		return nil, nil // without an engine, and without records, there is nothing of ours
	}
	if err != nil {
		return nil, err
	}
	networks, err := quick(ctx, e, "list networks", func(ctx context.Context) ([]network.Summary, error) {
		return e.NetworkList(ctx, network.ListOptions{Filters: filter})
	})
	if err != nil {
		return nil, err
	}
	volumes, err := quick(ctx, e, "list volumes", func(ctx context.Context) (volume.ListResponse, error) {
		return e.VolumeList(ctx, volume.ListOptions{Filters: filter})
	})
	if err != nil {
		return nil, err
	}
	var found []runtime.Resource
	has := map[string]bool{} // nonces with a container
	for _, c := range containers {
		has[c.Labels[labelNonce]] = true
		res := resource(kindContainer, c.ID, c.Labels, time.Unix(c.Created, 0), now)
		res.Kept = !res.Live && isKept(c.Labels, now)
		found = append(found, res)
	}
	for _, n := range networks {
		if !has[n.Labels[labelNonce]] {
			found = append(found, resource(kindNetwork, n.ID, n.Labels, n.Created, now))
		}
	}
	for _, v := range volumes.Volumes {
		if !has[v.Labels[labelNonce]] {
			created, _ := time.Parse(time.RFC3339, v.CreatedAt)
			found = append(found, resource(kindVolume, v.Name, v.Labels, created, now))
		}
	}
	return found, nil
}

func resource(kind, id string, labels map[string]string, created, now time.Time) runtime.Resource {
	return runtime.Resource{
		Handle: handle(kind, id), Name: labels[labelName], Labels: read(labels), Created: created, Live: isLive(labels, now),
	}
}

// fullID is the only kind of id that names one thing for ever; the engine takes names and
// beginnings of ids as well.
var fullID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Destroy removes a container with its network and volumes, or what is left of those. Whether
// its owner lives is for the caller to ask ([runtime.Resource].Live).
func (r *Runtime) Destroy(ctx context.Context, h runtime.Handle) error {
	if h.Runtime != Type {
		return fmt.Errorf("destroy %s %s: not a handle of the docker runtime", h.Kind, h.ID)
	}
	// What has begun should end, so that no half is left.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), r.cfg.Close, errBudget)
	defer cancel()
	labels, err := r.labelsOf(ctx, h)
	if isGone(err) {
		return nil
	}
	if err == nil && (labels[labelManaged] != Type || labels[labelStore] != r.cfg.Store) {
		err = fmt.Errorf("it belongs to store %q, we to %s", labels[labelStore], r.cfg.Store)
	}
	if err == nil {
		container := ""
		if h.Kind == kindContainer {
			container = h.ID
		}
		err = r.destroyEstate(ctx, container, labels[labelNonce])
	}
	if err != nil {
		return fmt.Errorf("destroy %s %s: %w", h.Kind, h.ID, err)
	}
	r.forget(labels)
	return nil
}

// labelsOf looks at what a handle names.
func (r *Runtime) labelsOf(ctx context.Context, h runtime.Handle) (map[string]string, error) {
	e := r.engine
	if h.Kind != kindVolume && !fullID.MatchString(h.ID) {
		return nil, errNoSuchID
	}
	switch h.Kind {
	case kindContainer:
		info, err := quick(ctx, e, "inspect container", func(ctx context.Context) (container.InspectResponse, error) {
			return e.ContainerInspect(ctx, h.ID)
		})
		if err != nil {
			return nil, err
		}
		return info.Config.Labels, nil
	case kindNetwork:
		info, err := quick(ctx, e, "inspect network", func(ctx context.Context) (network.Inspect, error) {
			return e.NetworkInspect(ctx, h.ID, network.InspectOptions{})
		})
		return info.Labels, err
	case kindVolume:
		info, err := quick(ctx, e, "inspect volume", func(ctx context.Context) (volume.Volume, error) {
			return e.VolumeInspect(ctx, h.ID)
		})
		return info.Labels, err
	}
	return nil, fmt.Errorf("a %s is nothing that this runtime makes", h.Kind)
}

// forget removes the record of an estate that is gone, if it is on this machine. Its owner,
// if he lives, still has the lock of the removed directory and finds out in his time.
func (r *Runtime) forget(labels map[string]string) {
	if labels[labelHost] != hostID() {
		return
	}
	if e, err := readEstate(labels); err == nil && owner(labels) != alive {
		e.forget()
	}
}

// tidyAge is how old a record is before nobody is about to use it.
const tidyAge = time.Hour

// tidy removes the records of dead owners that belong to nothing: whoever crashed between
// a record and its container, or after it. It needs no engine: a record that is older than
// its expiry by an hour belongs to nothing that anybody would keep, and what may still be
// on the engine is listed by its labels.
func (r *Runtime) tidy(now time.Time) { r.clear(now, false) }

// clear returns what tidy removes, and with dry removes nothing.
func (r *Runtime) clear(now time.Time, dry bool) []runtime.Pruned {
	var found []runtime.Pruned
	paths, _ := filepath.Glob(filepath.Join(r.cfg.Dir, boxesName, "*@*"))
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || now.Sub(info.ModTime()) < tidyAge {
			continue
		}
		e := &estate{path: path}
		err = readJSON(filepath.Join(path, recordName), &e.record)
		if err == nil && now.Sub(e.Labels.ExpiresAt) < tidyAge || err != nil && !notThere(err) {
			continue
		}
		if e.lock, _ = lockDir(path); e.lock == nil {
			continue
		}
		found = append(found, runtime.Pruned{Kind: "record", ID: path, Used: info.ModTime(), Why: "its owner is dead and it has expired"})
		if dry {
			e.release()
		} else {
			e.forget()
		}
	}
	leftovers, _ := filepath.Glob(filepath.Join(r.cfg.Dir, "*.new"))
	for _, path := range leftovers {
		info, err := os.Stat(path)
		if err != nil || now.Sub(info.ModTime()) <= tidyAge || !strings.HasPrefix(filepath.Base(path), "box-") {
			continue
		}
		if dry || os.Remove(path) == nil {
			found = append(found, runtime.Pruned{Kind: "file", ID: path, Bytes: info.Size(), Used: info.ModTime(), Why: "a tool that was not written to its end"})
		}
	}
	return found
}

// neverUsed reports whether this directory has no record of a container.
func (r *Runtime) neverUsed() bool {
	paths, err := filepath.Glob(filepath.Join(r.cfg.Dir, boxesName, "*@*"))
	return err == nil && len(paths) == 0
}
