// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"

	"github.com/docker/docker/api/types/container"
)

// restart stops the container and starts it again, which nothing inside survives. What is
// in its layer stays; what is in memory is put back (the disk) or lost (/dev/shm).
func (s *Sandbox) restart(ctx context.Context) error {
	s.setStopping(true)
	defer s.setStopping(false)
	e := s.rt.engine
	disk, err := s.saveDisk(ctx)
	if err != nil {
		return err
	}
	defer disk.Close()
	now := 0
	_, err = slow(ctx, e, "stop container", just(func(ctx context.Context) error {
		return e.ContainerStop(ctx, s.box.ID, container.StopOptions{Timeout: &now})
	}))
	if err != nil {
		return err
	}
	if !s.box.Mounted {
		if err := s.rt.tools.put(ctx, s.box.ID, s.box.Arch); err != nil {
			return err
		}
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.restarts++
	phase := s.phase
	s.mu.Unlock()
	if err := s.loadDisk(ctx, disk); err != nil {
		return err
	}
	return s.applyNetwork(ctx, phase)
}

func (s *Sandbox) setStopping(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = on
}
