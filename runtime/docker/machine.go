// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/docker/docker/api/types/system"

	"github.com/tidemill/tidemill/runtime"
)

// machine is what one engine can do.
type machine struct {
	policies []runtime.NetworkPolicy
	switches string // why phases can't differ in their network; empty: they can
	limits   []string
	why      map[string]string // by policy or limit: why it isn't among them
	swap     bool              // swap can be limited together with memory
	driver   string            // of the storage
	quotas   *quotas
}

// machines holds the findings once there are any. A failure is not kept: the engine may
// be started later.
type machines struct {
	mu  sync.Mutex
	one *machine
}

// machine asks the engine what it can do, once.
func (r *Runtime) machine(ctx context.Context) (*machine, error) {
	r.found.mu.Lock()
	defer r.found.mu.Unlock()
	if r.found.one != nil {
		return r.found.one, nil
	}
	info, err := quick(ctx, r.engine, "info", r.engine.Info)
	if err != nil {
		return nil, err
	}
	if info.OSType != "linux" {
		return nil, fmt.Errorf("the Docker engine at %s runs %s containers: want an engine for linux", r.engine.DaemonHost(), info.OSType)
	}
	m := survey(info)
	if err := r.checkNetworks(ctx, info.ID, m); err != nil {
		return nil, err
	}
	r.watch.begin(info.SystemTime)
	r.found.one = m
	return m, nil
}

// survey reads what the engine says about itself.
func survey(info system.Info) *machine {
	m := &machine{
		why: map[string]string{
			string(runtime.LimitedInternet): "an allow list needs a proxy beside the box, which a single container hasn't; runtime.type compose has one",
			"gpu_types":                     "the engine hands out GPUs by number, not by model",
		},
		swap: info.SwapLimit, driver: info.Driver,
		quotas: &quotas{driver: info.Driver, tried: !mayHaveQuotas(info)},
	}
	for _, limit := range []struct {
		key string
		ok  bool
		why string
	}{
		{"cpus", info.CPUCfsQuota, "the engine's kernel has no CPU quotas"},
		{"memory", info.MemoryLimit, "the engine's kernel has no memory limits"},
		{"disk", true, ""},
		{"pids", info.PidsLimit, "the engine's kernel has no limit on processes"},
		{"files", true, ""},
		{"shm", true, ""},
		{"gpus", hasGPUs(info), "the engine has neither the nvidia runtime nor a GPU of its own discovery"},
	} {
		if limit.ok {
			m.limits = append(m.limits, limit.key)
		} else {
			m.why[limit.key] = limit.why
		}
	}
	return m
}

func hasGPUs(info system.Info) bool {
	if _, ok := info.Runtimes["nvidia"]; ok {
		return true
	}
	for _, d := range info.DiscoveredDevices {
		if strings.Contains(d.ID, "gpu") {
			return true
		}
	}
	return false
}

// unprotected is what a container isn't kept from, on any engine.
var unprotected = []string{
	"The kernel is the host's: who finds a hole in it gets out.",
	"Who may use the engine is as good as root on its machine; the worker is one of those.",
	"Programs that run as root inside are root of the container, with the engine's default capabilities less NET_RAW and MKNOD.",
	"Under full_internet a sandbox reaches what the engine's machine reaches, its own listeners and private networks included.",
	"A program that changes a directory while files are copied out of it may have a symlink followed, to other files of its own container.",
	"When the worker is killed, what runs in its containers goes on until they are swept, or their names are opened again.",
	"When a command out of time can't be killed otherwise, the container is stopped and started: what other commands left running ends too, and /dev/shm is empty.",
}

// Properties declares what the engine was found to enforce. Where none answers it is
// nothing.
func (r *Runtime) Properties() runtime.Properties {
	p := runtime.Properties{Users: true, Images: true, OwnProcesses: true, HidesHost: true}
	m, err := r.machine(context.Background()) // bounded by the engine's deadline
	if err != nil {
		p.Unprotected = []string{fmt.Sprintf("Nothing is known about the engine: %v.", err)}
		return p
	}
	p.Policies, p.Limits = slices.Clone(m.policies), slices.Clone(m.limits)
	p.Unprotected = slices.Clone(unprotected)
	if m.quotas.none() {
		p.Unprotected = append(p.Unprotected, fmt.Sprintf(
			"resources.disk bounds the workdir only, by a disk in memory that counts towards resources.memory: the engine's storage driver %s has no quotas.", m.driver))
	}
	if !m.swap && slices.Contains(m.limits, "memory") {
		p.Unprotected = append(p.Unprotected, "resources.memory doesn't bound swap: the engine's kernel can't.")
	}
	for _, key := range []string{"cpus", "memory", "pids", "gpus"} {
		if why := m.why[key]; why != "" {
			p.Unprotected = append(p.Unprotected, fmt.Sprintf("No limit of %s is enforced: %s.", key, why))
		}
	}
	return p
}
