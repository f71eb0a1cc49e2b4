// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestCreateRequest keeps what the engine is asked for, GPUs included, for which no
// machine is needed.
func TestCreateRequest(t *testing.T) {
	labels := map[string]string{labelManaged: Type, labelTrial: "0123456789abcdef0123456789abcdef"}
	for name, p := range map[string]plan{
		"plain": {imageID: "sha256:0123", labels: labels, network: none, tool: "/dir/box-amd64-01", workdir: "/app"},
		"limits": {
			imageID: "sha256:0123", labels: labels, network: "0f1e2d", tool: "/dir/box-amd64-01", workdir: "/app", swap: true, quota: true,
			limits: runtime.Resources{CPUs: 1.5, Memory: 512 << 20, Disk: 2 << 30, Pids: 128, Files: 1024, Shm: 64 << 20, GPUs: 2},
		},
		"disk-in-memory-tool-put-in": {
			imageID: "sha256:0123", labels: labels, network: none, volume: "trial-nonce", workdir: "/app",
			limits: runtime.Resources{Memory: 512 << 20, Disk: 64 << 20},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, host := p.configs()
			got, err := json.MarshalIndent(struct {
				*container.Config
				HostConfig *container.HostConfig
			}{cfg, host}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			file := filepath.Join("testdata", "create", name+".json")
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the request to create a container (-golden +now):\n%s", cmp.Diff(string(want), string(got)))
			}
		})
	}
}

// TestSurvey reads what engines say about themselves.
func TestSurvey(t *testing.T) {
	full := system.Info{Driver: "overlay2", MemoryLimit: true, SwapLimit: true, CPUCfsQuota: true, PidsLimit: true}
	for what, test := range map[string]struct {
		edit  func(*system.Info)
		limit string
		want  bool
	}{
		"memory":       {func(*system.Info) {}, "memory", true},
		"no memory":    {func(i *system.Info) { i.MemoryLimit = false }, "memory", false},
		"no pids":      {func(i *system.Info) { i.PidsLimit = false }, "pids", false},
		"no cpus":      {func(i *system.Info) { i.CPUCfsQuota = false }, "cpus", false},
		"no GPU":       {func(*system.Info) {}, "gpus", false},
		"nvidia":       {func(i *system.Info) { i.Runtimes = map[string]system.RuntimeWithStatus{"nvidia": {}} }, "gpus", true},
		"GPU by model": {func(i *system.Info) { i.Runtimes = map[string]system.RuntimeWithStatus{"nvidia": {}} }, "gpu_types", false},
		"a discovered one": {func(i *system.Info) {
			i.DiscoveredDevices = []system.DeviceInfo{{Source: "cdi", ID: "nvidia.com/gpu=0"}}
		}, "gpus", true},
	} {
		info := full
		test.edit(&info)
		m := survey(info)
		got := false
		for _, l := range m.limits {
			got = got || l == test.limit
		}
		if got != test.want || !got && m.why[test.limit] == "" {
			t.Errorf("%s: %v, because %q; want %v", what, m.limits, m.why[test.limit], test.want)
		}
	}
	if survey(full).quotas.none() {
		t.Error("overlay2 is said to have no quotas before anybody tried")
	}
	full.Driver = "vfs"
	if !survey(full).quotas.none() {
		t.Error("vfs is said to have quotas")
	}
}

// TestIgnoredLimits: an engine that takes a limit and won't keep it is refused.
func TestIgnoredLimits(t *testing.T) {
	for warning, bad := range map[string]bool{
		"Your kernel does not support memory limit capabilities or the cgroup is not mounted. Limitation discarded.": true,
		"PIDs Limit discarded.":                                  true,
		"IPv4 forwarding is disabled. Networking will not work.": false,
	} {
		err := ignored([]string{warning})
		if (err != nil) != bad || bad && !strings.Contains(err.Error(), warning) {
			t.Errorf("%q: error %v", warning, err)
		}
	}
}
