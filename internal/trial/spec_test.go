// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// A build has time of its own, beside that of provisioning, and a sandbox expires after
// all that its attempt may take.
func TestTimesOfASandbox(t *testing.T) {
	minutes := func(n int) manifest.Duration { return manifest.Duration(time.Duration(n) * time.Minute) }
	sick := &manifest.Healthcheck{StartPeriod: minutes(100), StartInterval: minutes(1), Interval: minutes(10), Timeout: minutes(5), Retries: 4}
	const sickFor = (100 + 1 + 5 + 4*15) * time.Minute
	base := DefaultAgentTimeout + DefaultGradeTimeout + 2*collectTimeout + captureTimeout + 2*time.Minute + time.Hour
	for name, c := range map[string]struct {
		run     manifest.Run
		task    manifest.Task
		image   runtime.Image
		ready   time.Duration
		expires time.Duration // beyond base and ready
	}{
		"nothing is said": {ready: DefaultProvisionTimeout},
		"a build": {
			task:  manifest.Task{Build: &manifest.Build{Context: "/ctx", Dockerfile: "Dockerfile"}},
			image: runtime.Image{BuildContext: "/ctx", Dockerfile: "Dockerfile", BuildTimeout: DefaultBuildTimeout},
			ready: DefaultProvisionTimeout + DefaultBuildTimeout,
		},
		"a long build, a short run": {
			run:   manifest.Run{Runtime: manifest.RuntimeConfig{Timeout: minutes(1)}},
			task:  manifest.Task{Build: &manifest.Build{Context: "/ctx", Timeout: minutes(60)}},
			image: runtime.Image{BuildContext: "/ctx", BuildTimeout: time.Hour},
			ready: 61 * time.Minute,
		},
		"a build that isn't needed": {
			run:   manifest.Run{Runtime: manifest.RuntimeConfig{Image: "debian:12"}},
			task:  manifest.Task{Build: &manifest.Build{Context: "/ctx", Timeout: minutes(60)}},
			image: runtime.Image{Ref: "debian:12"}, ready: DefaultProvisionTimeout,
		},
		"health of the task": {task: manifest.Task{Healthcheck: sick}, ready: DefaultProvisionTimeout, expires: sickFor},
		"health of a step": {
			task: manifest.Task{Steps: []manifest.Step{{Healthcheck: sick}}}, ready: DefaultProvisionTimeout, expires: sickFor,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if len(c.task.Steps) == 0 {
				c.task.Steps = make([]manifest.Step, 1)
			}
			synctest.Test(t, func(t *testing.T) { // where no time passes
				spec := newAttempt(Config{Run: &manifest.RunRecord{Run: c.run}, Task: &c.task}).spec()
				if diff := cmp.Diff(c.image, spec.Image); diff != "" || spec.ReadyTimeout != c.ready {
					t.Errorf("ready in %s, want %s; image (-want +got):\n%s", spec.ReadyTimeout, c.ready, diff)
				}
				if got, want := time.Until(spec.Labels.ExpiresAt), base+c.ready+c.expires; got != want {
					t.Errorf("expires in %s, want %s", got, want)
				}
			})
		})
	}
}
