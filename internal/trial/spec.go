// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"time"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// RunSpec is what a runtime is asked to prepare for a run. Asking for it before
// anything is submitted is how a policy that can't be enforced is refused early. What
// only the tasks say is not in it: see [Admissible].
func RunSpec(run manifest.Run, runID, store, worker string) runtime.RunSpec {
	spec := runtime.RunSpec{
		Run: runID, Store: store, Worker: worker,
		Resources: Resources(run.Runtime.Resources, manifest.Resources{}),
		Options:   run.Runtime.Options,
	}
	if run.NetworkPolicy != manifest.TaskNetwork {
		spec.Network = []runtime.Network{networkOf(run)}
	}
	if run.Runtime.Image != "" {
		spec.Images = []runtime.Image{{Ref: run.Runtime.Image}}
	}
	return spec
}

// RecordSpec is [RunSpec] of a run that was submitted: what its tasks ask for is known.
func RecordSpec(rec *manifest.RunRecord, store, worker string) runtime.RunSpec {
	spec := RunSpec(rec.Run, rec.RunID, store, worker)
	for _, n := range rec.Asks.Networks {
		spec.Network = append(spec.Network, runtime.Network{Policy: runtime.NetworkPolicy(n.Policy), Allow: n.Allow})
	}
	spec.Users = rec.Asks.Users
	spec.Resources.GPUs = cmp.Or(spec.Resources.GPUs, rec.Asks.GPUs)
	return spec
}

func networkOf(run manifest.Run) runtime.Network {
	return runtime.Network{Policy: runtime.NetworkPolicy(run.NetworkPolicy), Allow: run.LimitedInternetAllowlist}
}

// phases in their order.
var phases = []runtime.Phase{runtime.Setup, runtime.Agent, runtime.Grade}

// networks are what each phase may reach: what the run says for all of them, or what the
// task asks for where the run leaves it to its tasks. A task that asks for nothing gets
// nothing.
func networks(run manifest.Run, task *manifest.Task) map[runtime.Phase]runtime.Network {
	if run.NetworkPolicy != manifest.TaskNetwork {
		return map[runtime.Phase]runtime.Network{runtime.Agent: networkOf(run)}
	}
	out := map[runtime.Phase]runtime.Network{}
	for _, phase := range phases {
		n := task.Network[string(phase)]
		out[phase] = runtime.Network{
			Policy: cmp.Or(runtime.NetworkPolicy(n.Policy), runtime.NoInternet), Allow: n.Allow,
		}
	}
	return out
}

// imageOf is what the sandbox is made from: the run's image goes before the task's, and
// one that there is before one that has to be built.
func imageOf(run manifest.Run, task *manifest.Task) runtime.Image {
	ref := cmp.Or(run.Runtime.Image, task.Image)
	if ref != "" || task.Build == nil {
		return runtime.Image{Ref: ref}
	}
	b := task.Build
	return runtime.Image{
		BuildContext: b.Context, Dockerfile: b.Dockerfile, BuildTimeout: cmp.Or(b.Timeout.D(), DefaultBuildTimeout),
	}
}

func usersOf(task *manifest.Task) map[runtime.Phase]string {
	users := map[runtime.Phase]string{}
	for phase, user := range task.Users {
		users[runtime.Phase(phase)] = user
	}
	return users
}

// spec describes the sandbox of this attempt.
func (a *attempt) spec() runtime.Spec {
	run, task := a.Run.Run, a.Task
	return runtime.Spec{
		Name: a.Row.TrialID,
		Labels: runtime.Labels{
			Store: a.StoreUUID, Run: a.Run.RunID, Task: a.Row.TaskID, TrialIndex: a.Row.TrialIndex,
			Trial: a.Row.TrialID, Attempt: a.Attempt, Worker: a.Worker, ExpiresAt: time.Now().Add(a.longest() + a.Keep).UTC(),
		},
		Image:        imageOf(run, task),
		Workdir:      task.Workdir,
		Users:        usersOf(task),
		Network:      networks(run, task),
		Resources:    Resources(run.Runtime.Resources, task.Resources),
		Env:          task.Env,
		ReadyTimeout: a.provisionTimeout(),
	}
}

// longest is how long the attempt can take at most, and an hour: who finds its sandbox
// later than that finds an orphan.
func (a *attempt) longest() time.Duration {
	sum := a.provisionTimeout() + healthTimeout(a.Task.Healthcheck) + captureTimeout + a.TeardownTimeout + time.Hour
	for _, s := range a.Task.Steps {
		sum += setupTimeout(s) + healthTimeout(s.Healthcheck) + a.agentTimeout(s) + a.gradeTimeout(s) + 2*collectTimeout
	}
	return sum
}

// provisionTimeout is the time until the sandbox is ready; a build has time of its own.
func (a *attempt) provisionTimeout() time.Duration {
	return cmp.Or(a.Run.Run.Runtime.Timeout.D(), DefaultProvisionTimeout) + imageOf(a.Run.Run, a.Task).BuildTimeout
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
