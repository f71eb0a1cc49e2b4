// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
)

// Digest computes the digest of a plan. It covers packs, tasks, repeats, agent, grade,
// runtime and policy, nothing else: what may differ between two submissions of which
// one continues the other (limits, retries, capture, storage, pool, priority, the name)
// is not in it. Add the selected tasks in their order, then take the Sum.
type Digest struct {
	input map[string]any
	tasks hash.Hash
	count int
}

// NewDigest begins the digest of a run with these packs. agentFiles is the digest of
// the archive of agent.files, empty without.
func NewDigest(run *Run, packs []PackRef, agentFiles string) *Digest {
	sums := make([]string, len(packs))
	for i, p := range packs {
		sums[i] = p.SHA256
	}
	res := run.Runtime.Resources
	policy := map[string]any{
		"network_policy": run.NetworkPolicy, "limited_internet_allowlist": sorted(run.LimitedInternetAllowlist),
		"agent_processes": run.AgentProcesses,
	}
	if len(run.TaskSecrets) > 0 { // a key that older plans don't have
		policy["task_secrets"] = sorted(run.TaskSecrets)
	}
	// encoding/json sorts the keys. Renaming one makes every old run a stranger.
	return &Digest{tasks: sha256.New(), input: map[string]any{
		"version": 1,
		"packs":   sums,
		"repeats": run.Repeats,
		"agent": map[string]any{
			"name": run.Agent.Name, "command": list(run.Agent.Command), "files": agentFiles,
			"env": orEmpty(run.Agent.Env), "secrets": sorted(run.Agent.Secrets), "timeout": run.Agent.Timeout,
		},
		"grade": map[string]any{
			"primary": run.Grade.Primary, "pass_threshold": run.Grade.PassThreshold, "timeout": run.Grade.Timeout,
		},
		"runtime": map[string]any{
			"type": run.Runtime.Type, "image": run.Runtime.Image, "timeout": run.Runtime.Timeout,
			"options": orEmpty(run.Runtime.Options),
			"resources": map[string]any{
				"cpus": res.CPUs, "memory": res.Memory, "disk": res.Disk, "pids": res.Pids, "files": res.Files,
				"shm": res.Shm, "gpus": res.GPUs, "gpu_types": list(res.GPUTypes),
			},
		},
		"policy": policy,
	}}
}

// Add adds the next task. With several packs, a task's id is unique over all of them.
func (d *Digest) Add(taskID string) {
	var length [8]byte // so that no two lists of ids are the same bytes
	binary.BigEndian.PutUint64(length[:], uint64(len(taskID)))
	d.tasks.Write(length[:])
	d.tasks.Write([]byte(taskID))
	d.count++
}

// Sum returns the digest in hex.
func (d *Digest) Sum() string {
	d.input["tasks"] = map[string]any{"count": d.count, "sha256": hex.EncodeToString(d.tasks.Sum(nil))}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(d.input); err != nil {
		// Options are the only part of free form, and loading lets only JSON in.
		panic(fmt.Sprintf("manifest: digest: %v", err))
	}
	sum := sha256.Sum256(out.Bytes())
	return hex.EncodeToString(sum[:])
}

// An empty list and one that was left out are the same.
func list(s []string) []string { return append([]string{}, s...) }

func sorted(s []string) []string {
	s = list(s)
	slices.Sort(s)
	return s
}

func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
