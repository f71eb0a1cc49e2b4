// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"
)

// quotas says whether the storage driver can bound a container's layer. Only trying
// tells: overlay2 can on xfs that was mounted with pquota, and says so nowhere.
type quotas struct {
	driver string

	mu    sync.Mutex
	tried bool
	have  bool
}

// mayHaveQuotas leaves out the drivers that never have.
func mayHaveQuotas(info system.Info) bool {
	return slices.Contains([]string{"overlay2", "btrfs", "zfs", "devicemapper"}, info.Driver)
}

// none reports that there are none, as far as was tried.
func (q *quotas) none() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tried && !q.have
}

// use reports whether to ask the driver for a quota: until it refused one.
func (q *quotas) use() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.have || !q.tried
}

func (q *quotas) result(ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tried, q.have = true, ok
}

// isQuotaRefusal reads the error of a create that asked for a quota.
func isQuotaRefusal(err error) bool {
	text := err.Error()
	return strings.Contains(text, "storage-opt") || strings.Contains(text, "storage opt") || strings.Contains(text, "pquota") ||
		strings.Contains(text, "quota")
}

// makeDisk makes a disk in memory of a fixed size. It is a volume and not a tmpfs of the
// container's, because copies go through the engine, which sees volumes only.
func (o *opening) makeDisk(ctx context.Context) error {
	size := o.spec.Resources.Disk
	opts := volume.CreateOptions{
		Name: o.estate.Name + "-" + o.estate.Nonce, Driver: "local", Labels: o.estate.mark(),
		DriverOpts: map[string]string{
			"type": "tmpfs", "device": "tmpfs",
			// Empty files take no room, but memory of the kernel's.
			"o": fmt.Sprintf("size=%d,nr_inodes=%d,mode=0755,nosuid,nodev", size, max(4096, size/4096)),
		},
	}
	o.box.Volume = opts.Name // the name has our nonce: nobody else has it
	_, err := slow(context.WithoutCancel(ctx), o.rt.engine, "create volume", func(ctx context.Context) (volume.Volume, error) {
		return o.rt.engine.VolumeCreate(ctx, opts)
	})
	return err
}

// fillDisk copies what the image has at the workdir, which the disk hides, from a second
// container of the image that is never started. Both ends are the engine's.
func (o *opening) fillDisk(ctx context.Context, sb *Sandbox) error {
	e := o.rt.engine
	cfg, host := plan{imageID: o.image.ID, labels: o.estate.mark(), network: none}.configs()
	made, err := slow(context.WithoutCancel(ctx), e, "create a container to copy from", func(ctx context.Context) (container.CreateResponse, error) {
		return e.ContainerCreate(ctx, cfg, host, nil, nil, o.estate.Name+"-"+o.estate.Nonce)
	})
	if err != nil {
		return err // the sweep by our nonce removes what came to be all the same
	}
	err = o.pour(ctx, sb, made.ID)
	return errors.Join(err, e.removeContainer(context.WithoutCancel(ctx), made.ID))
}

func (o *opening) pour(ctx context.Context, sb *Sandbox, from string) error {
	e, work := o.rt.engine, o.box.Workdir
	if _, err := e.lstat(ctx, from, work); isGone(err) {
		return nil
	} else if err != nil {
		return err
	}
	_, err := slow(ctx, e, "copy the workdir of the image", func(ctx context.Context) (struct{}, error) {
		in, _, err := e.CopyFromContainer(ctx, from, work)
		if err != nil {
			return struct{}{}, err
		}
		defer in.Close()
		return struct{}{}, e.CopyToContainer(ctx, sb.box.ID, path.Dir(work), in, container.CopyToContainerOptions{})
	})
	if err != nil {
		return fmt.Errorf("the image's files at %s go onto the disk of %d bytes that resources.disk asks for: %w", work, o.spec.Resources.Disk, err)
	}
	return nil
}

// saveDisk reads what is on a disk in memory, which a stop would lose; nil where there is
// none. Everything inside is frozen meanwhile.
func (s *Sandbox) saveDisk(ctx context.Context) (*spool, error) {
	if s.box.Volume == "" {
		return nil, nil
	}
	thaw, err := s.freeze(ctx)
	if err != nil {
		return nil, err
	}
	saved := &spool{dir: s.rt.cfg.Dir}
	e := s.rt.engine
	_, err = slow(ctx, e, "save the disk", func(ctx context.Context) (int64, error) {
		in, _, err := e.CopyFromContainer(ctx, s.box.ID, s.box.Workdir)
		if err != nil {
			return 0, err
		}
		defer in.Close()
		return io.Copy(saved, in)
	})
	if err := errors.Join(err, thaw()); err != nil {
		return nil, errors.Join(err, saved.Close())
	}
	return saved, nil
}

// loadDisk puts back what was saved.
func (s *Sandbox) loadDisk(ctx context.Context, saved *spool) error {
	if saved == nil {
		return nil
	}
	_, err := slow(ctx, s.rt.engine, "load the disk", just(func(ctx context.Context) error {
		return s.rt.engine.CopyToContainer(ctx, s.box.ID, path.Dir(s.box.Workdir), saved.reader(), container.CopyToContainerOptions{})
	}))
	return err
}
