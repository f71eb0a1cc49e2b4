// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
)

func seconds(n int) manifest.Duration { return manifest.Duration(time.Duration(n) * time.Second) }

// In a bubble time passes when everybody waits, and no test does.
func TestHealthOfTheTask(t *testing.T) {
	for name, c := range map[string]struct {
		check  manifest.Healthcheck
		ending trial.Ending
		tries  int
		detail string
	}{
		"well at once": {
			check: manifest.Healthcheck{Command: argv("signal tried")}, ending: trial.Graded, tries: 1,
		},
		"well at last": {
			check: manifest.Healthcheck{Command: argv("signal tried", "first 2 exit 1"), Retries: 3}, ending: trial.Graded, tries: 3,
		},
		"never well": {
			check:  manifest.Healthcheck{Command: argv("signal tried", "print no route", "warn  to db ", "exit 7"), Retries: 3},
			ending: trial.ProvisionFailed, tries: 3,
			detail: "the health check failed 3 times in a row; the last time it ended with exit code 7: no route\n to db",
		},
		"only once": {
			check:  manifest.Healthcheck{Command: argv("signal tried", "exit 1"), Retries: 1},
			ending: trial.ProvisionFailed, tries: 1, detail: "the health check failed once; the last time it ended with exit code 1",
		},
		"what a task says nothing of": {
			check: manifest.Healthcheck{Command: argv("signal tried", "exit 1")}, ending: trial.ProvisionFailed, tries: 3, detail: "3 times",
		},
		"failures don't count while it starts": { // at 0, 10, … 50, and well at 60
			check: manifest.Healthcheck{
				Command: argv("signal tried", "first 6 exit 1"), StartPeriod: seconds(60), StartInterval: seconds(10), Retries: 1,
			},
			ending: trial.Graded, tries: 7,
		},
		"and count from then on": { // at 0, 10, … 50, and then at 60 and 63
			check: manifest.Healthcheck{
				Command: argv("signal tried", "exit 1"), StartPeriod: seconds(60), StartInterval: seconds(10),
				Interval: seconds(3), Retries: 2,
			},
			ending: trial.ProvisionFailed, tries: 8, detail: "2 times in a row",
		},
		"a start period without an interval of its own": { // at 0, 30 and then at 60
			check:  manifest.Healthcheck{Command: argv("signal tried", "exit 1"), StartPeriod: seconds(60), Interval: seconds(30), Retries: 1},
			ending: trial.ProvisionFailed, tries: 3, detail: "failed once",
		},
		"it hangs": {
			check:  manifest.Healthcheck{Command: argv("signal tried", "print waiting", "hold"), Timeout: seconds(5), Retries: 2},
			ending: trial.ProvisionFailed, tries: 2, detail: "the last time it ran out of time: waiting",
		},
		"it can't be started": {
			check:  manifest.Healthcheck{Command: argv("no-start"), Retries: 2},
			ending: trial.ProvisionFailed, detail: `failed 2 times in a row; the last time it can't start "no-start"`,
		},
		"much output": {
			check:  manifest.Healthcheck{Command: argv("signal tried", "flood 64", "print the end", "exit 1"), Retries: 1},
			ending: trial.ProvisionFailed, tries: 1, detail: "the end",
		},
		"the sandbox dies of it": {
			check: manifest.Healthcheck{Command: argv("signal tried", "lose-sandbox")}, ending: trial.SandboxLost, tries: 1, detail: "sandbox lost",
		},
		"trouble of the runtime": {
			check: manifest.Healthcheck{Command: argv("signal tried", "error engine is away")}, ending: trial.InfraFailed, tries: 1, detail: "engine is away",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJob(t)
				j.Task.Healthcheck = &c.check
				j.opens("log db is up")
				got := j.run(t, t.Context())
				if got.Ending != c.ending || !strings.Contains(got.Outcome.Detail, c.detail) || len(got.Outcome.Detail) > 1500 {
					t.Errorf("%s: %q; want %s: %q", got.Ending, got.Outcome.Detail, c.ending, c.detail)
				}
				equal(t, "tries", c.tries, j.rt.Control().Reached(trialID, "tried"))
				if c.ending != trial.ProvisionFailed {
					return
				}
				equal(t, "phase and stage", [2]string{"provision", "healthcheck"}, [2]string{got.Outcome.Phase, got.Outcome.Stage})
				if got.Permanent || !got.Ending.ShouldRetry(nil, got.Permanent) {
					t.Error("it is not tried again")
				}
				if !strings.HasPrefix(got.Grade.Reasons, "Provisioning failed at healthcheck: ") {
					t.Errorf("reasons %q", got.Grade.Reasons)
				}
				equal(t, "evidence", "is up\n", got.files["services/db.log"])
				if !strings.Contains(got.files["logs/agent.log"], "the health check failed") {
					t.Errorf("agent.log says nothing of it:\n%s", got.files["logs/agent.log"])
				}
			})
		})
	}
}

func TestStopWhileHealthIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t)
		j.Task.Healthcheck = &manifest.Healthcheck{Command: argv("signal tried", "exit 1"), Interval: seconds(3600), Retries: 100}
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			_ = j.rt.Control().Wait(t.Context(), trialID, "tried")
			cancel(trial.ErrCancelled)
		}()
		if got := j.run(t, ctx); got.Ending != trial.RunCancelled || got.Outcome.Phase != "provision" {
			t.Errorf("%+v", got.Outcome)
		}
	})
}

// The check is the task's: it runs in the setup phase, as its user and with the task's
// variables, and what it prints holds no secret.
func TestHealthcheckSeesWhatSetupSees(t *testing.T) {
	j := newJob(t)
	j.Task.Users = map[string]string{"setup": "root", "agent": "ann"}
	j.Secrets = map[string]string{"API_KEY": "some-secret-value"}
	j.env("PROJECT", "demo")
	j.Task.Healthcheck = &manifest.Healthcheck{
		Command: argv("whoami", "phase", "echo-env PROJECT", "echo-env TIDEMILL_TRIAL_ID", "print ${TIDEMILL_WORKDIR} some-secret-value", "exit 1"), Retries: 1,
	}
	got := j.run(t, t.Context())
	want := "the health check failed once; the last time it ended with exit code 1: " +
		"root\nsetup no_internet\ndemo\n" + trialID + "\n/workdir [redacted]"
	equal(t, "detail", want, got.Outcome.Detail)
}

func TestHealthOfAStep(t *testing.T) {
	sick := &manifest.Healthcheck{Command: argv("signal tried", "print greet.sh is missing", "exit 1"), Retries: 2}
	good := func(name string) manifest.Step { return step(name, `["print worked"]`, "write verifier/reward.txt 1") }
	t.Run("before the first agent it is the environment's", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			j := multi(t, good("one"), good("two"))
			j.Task.Steps[0].Healthcheck = sick
			got := j.run(t, t.Context())
			equal(t, "outcome", [4]string{"provision_failed", "setup", "healthcheck", "infra"},
				[4]string{string(got.Ending), got.Outcome.Phase, got.Outcome.Stage, string(got.Outcome.FailureClass)})
			if strings.Contains(got.files["logs/agent.log"], "worked") || got.Grade.Score != nil {
				t.Errorf("the agent ran all the same:\n%s", got.files["logs/agent.log"])
			}
		})
	})
	t.Run("after an agent it is that agent's result", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			j := multi(t, good("one"), good("two"), good("three"))
			j.Task.Steps[1].Healthcheck = sick
			j.Task.Steps[1].Setup = &manifest.Program{Command: argv("signal set-up")}
			got := j.run(t, t.Context())
			if got.Ending != trial.Graded || got.Outcome.FailureClass != "agent" {
				t.Errorf("%+v", got.Outcome)
			}
			equal(t, "score", 1.0/3, *got.Grade.Score)
			equal(t, "flags", []string{trial.FlagHealthcheck}, got.Outcome.Flags)
			equal(t, "set up, tried", [2]int{1, 2}, [2]int{
				j.rt.Control().Reached(trialID, "set-up"), j.rt.Control().Reached(trialID, "tried"),
			})
			if n := strings.Count(got.files["logs/agent.log"], "worked"); n != 1 || len(got.Grade.Steps) != 2 || *got.Grade.Steps[1].Score != 0 {
				t.Errorf("the agent ran %d times; steps %+v", n, got.Grade.Steps)
			}
			why := "step 2-two: the health check failed 2 times in a row; the last time it ended with exit code 1: greet.sh is missing"
			equal(t, "detail and reasons", [2]string{why, why}, [2]string{got.Outcome.Detail, got.Grade.Reasons})
		})
	})
	t.Run("and one that is well changes nothing", func(t *testing.T) {
		j := multi(t, good("one"), good("two"))
		j.Task.Steps[1].Healthcheck = &manifest.Healthcheck{Command: argv("phase")}
		if got := j.run(t, t.Context()); !got.Grade.BinaryPass || got.Outcome.Flags != nil {
			t.Errorf("%+v, grade %+v", got.Outcome, got.Grade)
		}
	})
}
