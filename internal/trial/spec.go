// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"time"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// RunSpec is what a runtime is asked to prepare for a run. Asking for it before
// anything is submitted is how a policy that can't be enforced is refused early.
func RunSpec(run manifest.Run, runID, store, worker string) runtime.RunSpec {
	spec := runtime.RunSpec{
		Run: runID, Store: store, Worker: worker,
		Network:   []runtime.Network{network(run)},
		Resources: Resources(run.Runtime.Resources, manifest.Resources{}),
		Options:   run.Runtime.Options,
	}
	if run.Runtime.Image != "" {
		spec.Images = []runtime.Image{{Ref: run.Runtime.Image}}
	}
	return spec
}

func network(run manifest.Run) runtime.Network {
	return runtime.Network{Policy: runtime.NetworkPolicy(run.NetworkPolicy), Allow: run.LimitedInternetAllowlist}
}

// spec describes the sandbox of this attempt.
func (a *attempt) spec() runtime.Spec {
	run, task := a.Run.Run, a.Task
	users := map[runtime.Phase]string{}
	for phase, user := range task.Users {
		users[runtime.Phase(phase)] = user
	}
	return runtime.Spec{
		Name: a.Row.TrialID,
		Labels: runtime.Labels{
			Store: a.StoreUUID, Run: a.Run.RunID, Task: a.Row.TaskID, TrialIndex: a.Row.TrialIndex,
			Trial: a.Row.TrialID, Attempt: a.Attempt, Worker: a.Worker, ExpiresAt: time.Now().Add(a.longest() + a.Keep).UTC(),
		},
		Image:        runtime.Image{Ref: a.image()},
		Users:        users,
		Network:      map[runtime.Phase]runtime.Network{runtime.Agent: network(run)},
		Resources:    Resources(run.Runtime.Resources, task.Resources),
		Env:          task.Env,
		ReadyTimeout: a.provisionTimeout(),
	}
}

func (a *attempt) image() string { return cmp.Or(a.Run.Run.Runtime.Image, a.Task.Image) }

// longest is how long the attempt can take at most, and an hour: who finds its sandbox
// later than that finds an orphan.
func (a *attempt) longest() time.Duration {
	sum := a.provisionTimeout() + captureTimeout + a.TeardownTimeout + time.Hour
	for _, s := range a.Task.Steps {
		sum += setupTimeout(s) + a.agentTimeout(s) + a.gradeTimeout(s) + 2*collectTimeout
	}
	return sum
}

func (a *attempt) provisionTimeout() time.Duration {
	return cmp.Or(a.Run.Run.Runtime.Timeout.D(), DefaultProvisionTimeout)
}

func setupTimeout(s manifest.Step) time.Duration {
	if s.Setup == nil {
		return 0
	}
	return cmp.Or(s.Setup.Timeout.D(), DefaultSetupTimeout)
}

func (a *attempt) agentTimeout(s manifest.Step) time.Duration {
	return cmp.Or(a.Run.Run.Agent.Timeout.D(), s.AgentTimeout.D(), DefaultAgentTimeout)
}

func (a *attempt) gradeTimeout(s manifest.Step) time.Duration {
	return cmp.Or(a.Run.Run.Grade.Timeout.D(), s.Grade.Timeout.D(), DefaultGradeTimeout)
}

// Resources translates what run and task ask for; the run goes before the task.
func Resources(run, task manifest.Resources) runtime.Resources {
	r := runtime.Resources{
		CPUs:   cmp.Or(run.CPUs, task.CPUs),
		Memory: int64(cmp.Or(run.Memory, task.Memory)),
		Disk:   int64(cmp.Or(run.Disk, task.Disk)),
		Pids:   cmp.Or(run.Pids, task.Pids),
		Files:  cmp.Or(run.Files, task.Files),
		Shm:    int64(cmp.Or(run.Shm, task.Shm)),
		GPUs:   cmp.Or(run.GPUs, task.GPUs),
	}
	r.GPUTypes = run.GPUTypes
	if len(r.GPUTypes) == 0 {
		r.GPUTypes = task.GPUTypes
	}
	return r
}
