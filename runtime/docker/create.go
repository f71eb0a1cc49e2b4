// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/tidemill/tidemill/runtime"
)

// plan is all that makes a container what it is.
type plan struct {
	imageID string
	labels  map[string]string
	limits  runtime.Resources
	swap    bool   // limit swap too
	network string // the id of a network, or "none"
	tool    string // the tool's file on the engine's machine; empty where it is put in
	quota   bool   // the storage driver bounds the disk
	volume  string // the volume that does, at the workdir
	workdir string
}

const none = "none"

// configs makes the engine's request. Everything that an image or the engine's
// configuration could choose otherwise is said.
func (p plan) configs() (*container.Config, *container.HostConfig) {
	no := false
	cfg := &container.Config{
		Image:      p.imageID,
		Labels:     p.labels,
		User:       "0:0",
		WorkingDir: "/",
		Entrypoint: []string{toolPath},
		// The engine would run the image's in the box, as one more command.
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
	host := &container.HostConfig{
		NetworkMode: container.NetworkMode(p.network),
		// What our PID 1 prints is nothing, and commands' output doesn't go through the log.
		LogConfig: container.LogConfig{Type: none},
		// An init of the engine's would have our PID 1 for a child, and end with it when
		// everything in the box is killed.
		Init:          &no,
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		CapDrop:       []string{"MKNOD", "NET_RAW"},
		SecurityOpt:   []string{"no-new-privileges"},
		IpcMode:       container.IPCModePrivate,
		ShmSize:       p.limits.Shm,
	}
	if p.tool != "" {
		host.Mounts = append(host.Mounts, mount.Mount{
			Type: mount.TypeBind, Source: p.tool, Target: toolPath, ReadOnly: true,
		})
	}
	if p.volume != "" {
		host.Mounts = append(host.Mounts, mount.Mount{
			Type: mount.TypeVolume, Source: p.volume, Target: p.workdir, VolumeOptions: &mount.VolumeOptions{NoCopy: true},
		})
	}
	p.limit(host)
	return cfg, host
}

func (p plan) limit(host *container.HostConfig) {
	l := p.limits
	host.NanoCPUs = int64(l.CPUs * 1e9)
	if host.Memory = l.Memory; p.swap {
		host.MemorySwap = l.Memory // both together, so no swap
	}
	if l.Pids > 0 {
		host.PidsLimit = &l.Pids
	}
	if l.Files > 0 {
		host.Ulimits = []*container.Ulimit{{Name: "nofile", Soft: l.Files, Hard: l.Files}}
	}
	if l.Disk > 0 && p.quota {
		host.StorageOpt = map[string]string{"size": fmt.Sprint(l.Disk)}
	}
	if l.GPUs > 0 {
		host.DeviceRequests = []container.DeviceRequest{{Count: l.GPUs, Capabilities: [][]string{{"gpu"}}}}
	}
}

// ignored returns the warnings that say that the engine took a limit and won't keep it.
func ignored(warnings []string) error {
	for _, w := range warnings {
		if l := strings.ToLower(w); strings.Contains(l, "discard") || strings.Contains(l, "not support") {
			return &refusedError{fmt.Errorf("the engine would not enforce what was asked for: %s", w)}
		}
	}
	return nil
}
