// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"path"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/images"
	"github.com/tidemill/tidemill/runtime/docker/internal/subnet"
)

// opening is one Open on its way. Every step notes in box what it made, and undoing goes
// by that.
type opening struct {
	rt       *Runtime
	machine  *machine
	spec     runtime.Spec
	image    images.Image
	estate   *estate
	box      boxFacts
	stage    string
	evidence runtime.Evidence
	net      *subnet.Network // nil where no phase has one
}

// boxFacts are what a sandbox has on the engine, by the engine's own names.
type boxFacts struct {
	ID      string       `json:"id"`                // of the container
	Network string       `json:"network,omitempty"` // id of its own network
	Volume  string       `json:"volume,omitempty"`  // name of the disk
	Workdir string       `json:"workdir"`
	Arch    string       `json:"arch"`
	Mounted bool         `json:"mounted"` // the tool is mounted, not put in
	Agent   account      `json:"agent"`   // owner of what is copied in
	User    string       `json:"user"`    // the image's
	Image   images.Image `json:"image"`
	Facts   networkFacts `json:"network_facts,omitzero"`
}

// open makes the sandbox, or undoes what it made of it.
func (o *opening) open(ctx context.Context) (*Sandbox, error) {
	var err error
	if o.estate, err = o.rt.newEstate(o.spec.Name, o.spec.Labels); err != nil {
		return nil, err
	}
	o.spec.Labels = o.estate.Labels
	sb, err := o.build(ctx)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		o.collect(context.WithoutCancel(ctx), err)
		return nil, errors.Join(err, o.undo(context.WithoutCancel(ctx), sb, err))
	}
	return sb, nil
}

func (o *opening) build(ctx context.Context) (sb *Sandbox, err error) {
	o.box.Arch, o.box.User, o.box.Image = platformArch(o.image.Platform), o.image.User, o.image
	o.box.Workdir = o.workdir()
	p := plan{
		imageID: o.image.ID, labels: o.estate.mark(), limits: o.spec.Resources, swap: o.machine.swap && o.spec.Resources.Memory > 0,
		network: none, workdir: o.box.Workdir,
	}
	if o.needsNetwork() {
		// The engine decides who gets the name, but to ask before saves a network.
		if err := o.rt.contend(ctx, o.spec.Name); err != nil {
			return nil, err
		}
		if err := o.makeNetwork(ctx); err != nil {
			return nil, err
		}
		p.network = o.box.Network
	}
	if p.tool, err = o.rt.tools.file(o.box.Arch); err != nil {
		return nil, err
	}
	if err := o.create(ctx, p); err != nil {
		return nil, err
	}
	// To look into a container that doesn't run, the engine mounts its files each time. But
	// a disk can't be mounted where the image has no directory.
	late := o.box.Volume == ""
	if !late {
		if err := o.furnish(ctx); err != nil {
			return nil, err
		}
	}
	o.stage = runtime.StageReady
	sb = newSandbox(o.rt, o.estate, o.spec, o.box)
	sb.net = o.net
	if err := sb.applyNetwork(ctx, runtime.Setup); err != nil {
		return sb, err
	}
	if err := sb.start(ctx); err != nil {
		return sb, err
	}
	if late {
		o.stage = runtime.StageProvision
		if err := o.furnish(ctx); err != nil {
			return sb, err
		}
		o.stage = runtime.StageReady
		sb.box = o.box
	}
	if o.box.Volume != "" {
		if err := o.fillDisk(ctx, sb); err != nil {
			return sb, err
		}
		if err := sb.ownWorkdir(ctx); err != nil {
			return sb, err
		}
	}
	o.rt.watch.add(sb)
	return sb, nil
}

// workdir is where commands run: as the spec says, or the image, or /app. "/" is what
// some builders write where nobody said anything.
func (o *opening) workdir() string {
	if o.spec.Workdir != "" {
		return o.spec.Workdir
	}
	if w := path.Clean("/" + o.image.Workdir); w != "/" {
		return w
	}
	return "/app"
}

// create creates the container: without the tool where the engine doesn't see it, and
// with another kind of disk where its storage has no quotas.
func (o *opening) create(ctx context.Context, p plan) error {
	disk := o.spec.Resources.Disk > 0
	for {
		p.quota = disk && o.machine.quotas.use()
		if disk && !p.quota && o.box.Volume == "" {
			if err := o.makeDisk(ctx); err != nil {
				return err
			}
		}
		p.volume = o.box.Volume
		err := o.createNamed(ctx, p)
		switch {
		case err == nil && p.quota:
			o.machine.quotas.result(true)
		case err == nil:
		case p.quota && isQuotaRefusal(err):
			o.machine.quotas.result(false)
			continue
		case p.tool != "" && isUnseen(err):
			o.rt.tools.unseen()
			p.tool = ""
			continue
		default:
			return err
		}
		if p.tool == "" {
			return o.rt.tools.put(ctx, o.box.ID, o.box.Arch)
		}
		same, err := o.rt.tools.check(ctx, o.box.ID, o.box.Arch)
		if err != nil {
			return err
		}
		if o.box.Mounted = same; same {
			return nil
		}
		// Another file of that path is mounted: once more, without.
		if err := o.rt.engine.removeContainer(ctx, o.box.ID); err != nil {
			return err
		}
		o.box.ID, p.tool = "", ""
	}
}

// createNamed creates a container of the name, when nobody living has it. The call is not
// cancelled: it is quick, and what it made would have to be looked for.
func (o *opening) createNamed(ctx context.Context, p plan) error {
	cfg, host := p.configs()
	e := o.rt.engine
	for try := 0; ; try++ {
		made, err := slow(context.WithoutCancel(ctx), e, "create container", func(ctx context.Context) (container.CreateResponse, error) {
			return e.ContainerCreate(ctx, cfg, host, nil, nil, o.estate.Name)
		})
		if err == nil {
			o.box.ID = made.ID
			return ignored(made.Warnings)
		}
		if !isConflict(err) {
			if cerrdefs.IsInvalidArgument(err) && !isUnseen(err) && !isQuotaRefusal(err) {
				return &refusedError{err}
			}
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if contended := o.rt.contend(ctx, o.estate.Name); contended != nil {
			return contended
		}
		// An engine may hold a name for a moment after its container can't be seen any more.
		if err := pause(ctx, min(time.Duration(try)*20*time.Millisecond, time.Second)); err != nil {
			return err
		}
	}
}

// pause waits, or returns why not.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
