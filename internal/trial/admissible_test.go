// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

func TestAdmissible(t *testing.T) {
	everything := runtime.Properties{
		Policies: []runtime.NetworkPolicy{runtime.FullInternet, runtime.NoInternet, runtime.LimitedInternet},
		Limits:   []string{"cpus", "memory", "disk", "gpus"}, Users: true, Images: true,
	}
	little := runtime.Properties{Policies: []runtime.NetworkPolicy{runtime.NoInternet}, Limits: []string{"memory"}}
	for name, c := range map[string]struct {
		task   manifest.Task
		run    manifest.Run
		refuse string // by little; empty: it isn't
	}{
		"nothing is asked for": {run: manifest.Run{NetworkPolicy: manifest.TaskNetwork}},
		"an image":             {task: manifest.Task{Image: "debian:12"}, refuse: "image debian:12"},
		"a build":              {task: manifest.Task{Build: &manifest.Build{Context: "/packs/x", Dockerfile: "Dockerfile"}}, refuse: "image built from Dockerfile"},
		"a workdir":            {task: manifest.Task{Workdir: "/app"}, refuse: "workdir /app"},
		"a user of a phase":    {task: manifest.Task{Users: map[string]string{"setup": "", "agent": "ann"}}, refuse: "user ann"},
		"a program's user": {
			task: manifest.Task{Steps: []manifest.Step{{}, {Setup: &manifest.Program{User: "root"}}}}, refuse: "user root",
		},
		"a network of the task": {
			run:    manifest.Run{NetworkPolicy: manifest.TaskNetwork},
			task:   manifest.Task{Network: map[string]manifest.Network{"grade": {Policy: "full_internet"}}},
			refuse: "network_policy full_internet in the grade phase; it supports no_internet",
		},
		"a network of the task that doesn't count": {
			run:  manifest.Run{NetworkPolicy: "no_internet"},
			task: manifest.Task{Network: map[string]manifest.Network{"grade": {Policy: "full_internet"}}},
		},
		"a limit":                   {task: manifest.Task{Resources: manifest.Resources{Memory: 1, CPUs: 2}}, refuse: "resources.cpus 2; it supports memory"},
		"a limit that binds":        {task: manifest.Task{Resources: manifest.Resources{Memory: 1}}},
		"models of what isn't used": {task: manifest.Task{Resources: manifest.Resources{GPUTypes: []string{"h100"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.task.ID = "some/task"
			if c.run.NetworkPolicy == "" {
				c.run.NetworkPolicy = "no_internet"
			}
			if err := trial.Admissible("box", everything, &c.run, &c.task); err != nil {
				t.Errorf("a runtime that can do it all: %v", err)
			}
			err := trial.Admissible("box", little, &c.run, &c.task)
			if c.refuse == "" {
				if err != nil {
					t.Errorf("%v", err)
				}
				return
			}
			if _, ok := errors.AsType[*runtime.UnsupportedError](err); !ok || err.Error() != "task some/task: runtime box can't enforce "+c.refuse {
				t.Errorf("error %v, want %s refused", err, c.refuse)
			}
		})
	}
}

// What Open would refuse is refused here, and what is asked of Prepare is what the record
// of the run knows.
func TestRecordSpec(t *testing.T) {
	rec := manifest.RunRecord{
		RunID: "r1", Run: manifest.Run{NetworkPolicy: manifest.TaskNetwork},
		Asks: manifest.Asks{
			Networks: []manifest.Network{{Policy: "no_internet"}, {Policy: "limited_internet", Allow: []string{"example.com"}}},
			Users:    []string{"ann"},
		},
	}
	want := runtime.RunSpec{
		Run: "r1", Store: "s", Worker: "w", Users: []string{"ann"},
		Network: []runtime.Network{{Policy: runtime.NoInternet}, {Policy: runtime.LimitedInternet, Allow: []string{"example.com"}}},
	}
	if diff := cmp.Diff(want, trial.RecordSpec(&rec, "s", "w")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := trial.RunSpec(rec.Run, "r1", "s", "w"); len(got.Network) != 0 {
		t.Errorf("of the run alone nothing is known about networks: %+v", got.Network)
	}
}
