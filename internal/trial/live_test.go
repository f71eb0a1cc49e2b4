// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/runtime"
)

func TestWhoLooksInHasTheAgentsEnvironmentWithoutItsSecrets(t *testing.T) {
	j := newJob(t)
	j.Run.Run.Agent.Env = map[string]string{"MODEL": "some-model"}
	j.Secrets = map[string]string{"SOME_API_KEY": "the-secret-value"}
	j.env("TASK_VARIABLE", "of the task")
	var live *trial.Live
	j.OnOpen = func(l *trial.Live) { live = l }
	res := j.run(t, t.Context())
	if live == nil {
		t.Fatal("nobody was told of the sandbox")
	}
	env := live.Env()
	for name, want := range map[string]string{
		"MODEL": "some-model", "TASK_VARIABLE": "of the task", "TIDEMILL_TRIAL_ID": trialID,
		"TIDEMILL_INSTRUCTION_FILE": "/input/instruction.md",
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	if v, ok := env["SOME_API_KEY"]; ok {
		t.Errorf("the secret is there: %q", v)
	}
	if slices.Contains(res.Outcome.Flags, trial.FlagEntered) {
		t.Error("to look at the environment is not to enter")
	}
	if live.Handle().Runtime != "scripted" || !live.ExpiresAt().After(time.Now()) {
		t.Errorf("handle %+v, expires %s", live.Handle(), live.ExpiresAt())
	}
}

func TestASandboxIsKept(t *testing.T) {
	j := newJob(t)
	j.Keep = 24 * time.Hour
	j.agent("write out.txt hello", "leave-process")
	var live *trial.Live
	j.OnOpen = func(l *trial.Live) { live = l }
	j.left = func() []string { return nil } // it is to be left
	if res := j.run(t, t.Context()); !res.Grade.BinaryPass || res.TeardownErr != nil {
		t.Fatalf("%+v, teardown %v", res.Outcome, res.TeardownErr)
	}
	list, err := j.rt.List(t.Context())
	if err != nil || len(list) != 1 || !list[0].Kept || list[0].Live {
		t.Fatalf("resources %+v, %v", list, err)
	}
	if until := time.Until(list[0].Labels.ExpiresAt); until < 24*time.Hour || !list[0].Labels.ExpiresAt.Equal(live.ExpiresAt()) {
		t.Errorf("it expires in %s, at %s; want more than 24h, and %s", until, list[0].Labels.ExpiresAt, live.ExpiresAt())
	}
	box, err := j.rt.Attach(t.Context(), live.Handle())
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := box.Exec(t.Context(), runtime.Command{Argv: argv("require-file out.txt")}); err != nil || !exit.OK() {
		t.Errorf("%+v, %v", exit, err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := j.provider.Left(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
