// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
)

// A task gets those secrets that its run allows, also where its pack is another than the
// one that was submitted.
func TestTaskSecrets(t *testing.T) {
	t.Setenv("JUDGE_KEY", "of the judge")
	t.Setenv("AGENT_KEY", "of the agent")
	t.Setenv("OTHER_KEY", "of somebody else")
	t.Setenv("EMPTY_KEY", "")
	run := manifest.Run{TaskSecrets: []string{"JUDGE_KEY", "EMPTY_KEY"}}
	run.Agent.Secrets = []string{"AGENT_KEY"}
	wk := &work{w: &Worker{Config: Config{Name: "w1"}}, rec: &manifest.RunRecord{Run: run}}
	for name, c := range map[string]struct {
		uses string
		want map[string]string
		fail string
	}{
		"none":                          {"plain", map[string]string{}, ""},
		"what the run allows":           {"${JUDGE_KEY}", map[string]string{"JUDGE_KEY": "of the judge"}, ""},
		"what is the agent's too":       {"${AGENT_KEY}", map[string]string{"AGENT_KEY": "of the agent"}, ""},
		"what the run doesn't allow":    {"${OTHER_KEY}", nil, "the task needs the secret OTHER_KEY, which the run doesn't list under task_secrets"},
		"the same with a default":       {"${OTHER_KEY:-x}", map[string]string{}, ""},
		"what isn't set":                {"${EMPTY_KEY}", nil, "secret EMPTY_KEY is not set on worker w1"},
		"what isn't set with a default": {"${EMPTY_KEY:-x}", map[string]string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			task := &manifest.Task{Steps: []manifest.Step{{Grade: manifest.Program{SecretEnv: map[string]string{"KEY": c.uses}}}}}
			cfg := trial.Config{Task: task}
			err := wk.taskSecrets(&cfg)
			if c.fail != "" {
				if err == nil || !strings.Contains(err.Error(), c.fail) {
					t.Errorf("error %v, want %s", err, c.fail)
				}
				return
			}
			if diff := cmp.Diff(c.want, cfg.TaskSecrets); err != nil || diff != "" {
				t.Errorf("error %v; secrets (-want +got):\n%s", err, diff)
			}
		})
	}
}
