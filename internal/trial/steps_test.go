// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
)

// step is a step whose agent program is found in its row, as each step needs another.
func step(name, agent string, grader ...string) manifest.Step {
	return manifest.Step{
		Name: name, Instruction: "Do " + name + ".", AgentRow: []byte(agent),
		Grade: manifest.Program{Command: grader},
	}
}

func multi(t *testing.T, steps ...manifest.Step) *job {
	j := newJob(t)
	j.agent("run $TIDEMILL_ROW_FILE")
	j.Task.Steps = steps
	return j
}

func TestSteps(t *testing.T) {
	low := 0.5
	j := multi(
		t,
		step("build", `["read $TIDEMILL_INSTRUCTION_FILE","write built yes","write agent/notes.txt one","write artifacts/out.txt one","write agent/usage.json {\"prompt_tokens\":10,\"tool_calls\":1,\"tool_success_rate\":1,\"cost_usd\":0.5}","write agent/trajectory.jsonl {\"role\":\"assistant\",\"content\":\"building\"}"]`,
			"write verifier/notes.txt seen", "write tests/left x", `write verifier/reward.json {"reward":1,"style":0.5}`),
		step("test/all", `["read $TIDEMILL_INSTRUCTION_FILE","phase","read ./built","require-no-file /tests","require-no-file /solution","require-no-file /logs/verifier","require-no-file agent/notes.txt","write agent/notes.txt two","write artifacts/out.txt two","write agent/usage.json {\"prompt_tokens\":5,\"tool_calls\":3,\"tool_success_rate\":0,\"cost_usd\":0.25}","write agent/trajectory.jsonl {\"role\":\"assistant\",\"content\":\"testing\"}"]`,
			"require-no-file tests/left", `write verifier/reward.json {"reward":0.25}`),
		step("never", `["write never yes"]`, "write verifier/reward.txt 1"),
	)
	j.Task.Steps[1].MinReward = &low
	j.Task.Steps[0].MinReward = &low
	j.Task.Steps[1].Setup = &manifest.Program{Command: argv("phase")}
	j.Task.Artifacts = []string{"built", "never"}
	got := j.run(t, t.Context())
	if got.Ending != trial.Graded {
		t.Fatalf("%+v", got.Outcome)
	}
	// The mean over all steps, the one that was not reached counting 0.
	equal(t, "score", (1+0.25)/3, *got.Grade.Score)
	equal(t, "rewards", map[string]float64{"reward": 1.25 / 3, "style": 0.5 / 3}, got.Grade.Rewards)
	equal(t, "steps", []string{"build", "test/all"}, []string{got.Grade.Steps[0].Name, got.Grade.Steps[1].Name})
	equal(t, "step rewards", map[string]float64{"reward": 1, "style": 0.5}, got.Grade.Steps[0].Rewards)
	equal(t, "agent.log", []string{
		"step 1-build", "Do build.", "step 2-test_all", "setup no_internet", "Do test/all.agent no_internet", "yes",
	}, lines(got.files["logs/agent.log"]))
	if *got.Metrics.AgentExitCode != 0 {
		t.Errorf("step 2 met something of step 1:\n%s", got.files["logs/agent.log"])
	}
	m := got.Metrics
	equal(t, "usage", [3]float64{15, 0.75, 0.25}, [3]float64{float64(m.Usage.PromptTokens), *m.CostUSD, *m.ToolSuccessRate})
	if tr := got.files["trajectory.yaml"]; !strings.Contains(tr, "building") || !strings.Contains(tr, "testing") {
		t.Errorf("messages of both steps are not there:\n%s", tr)
	}
	var left []string
	for name := range got.files {
		if strings.HasPrefix(name, "logs/steps/") || strings.HasPrefix(name, "artifacts/") {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	equal(t, "files", []string{
		"artifacts/steps/1-build/out.txt", "artifacts/steps/2-test_all/out.txt", "artifacts/workdir/built",
		"logs/steps/1-build/agent/notes.txt", "logs/steps/1-build/agent/trajectory.jsonl", "logs/steps/1-build/verifier/notes.txt",
		"logs/steps/2-test_all/agent/notes.txt", "logs/steps/2-test_all/agent/trajectory.jsonl",
	}, left)
	equal(t, "notes", "two", got.files["logs/steps/2-test_all/agent/notes.txt"])
}

func TestStepsEndInTheMiddle(t *testing.T) {
	good := step("one", `["print fine"]`, "write verifier/reward.txt 1")
	last := step("three", `["write three yes"]`, "write verifier/reward.txt 1")
	for name, c := range map[string]struct {
		second manifest.Step
		ending trial.Ending
		detail string
		score  float64
	}{
		"no verdict":  {step("two", `["print x"]`, "print nothing"), trial.GraderFailed, "step 2-two: the grader left neither", -1},
		"lost":        {step("two", `["lose-sandbox"]`, "nan"), trial.SandboxLost, "step 2-two: exec in", -1},
		"provider":    {step("two", `["write agent/status.json {\"termination_reason\":\"api_error\"}"]`, "nan"), trial.ProviderFailed, "step 2-two: the model provider", -1},
		"died of it":  {step("two", `["oom box"]`, "nan"), trial.Exhausted, "agent used up its memory", 1.0 / 3},
		"goes on":     {step("two", `["fork-bomb"]`, "write verifier/reward.txt 0.5"), trial.Exhausted, "agent used up its pids", (1 + 0.5 + 1) / 3.0},
		"own word":    {step("two", `["write agent/status.json {\"termination_reason\":\"max_turns\"}"]`, "write verifier/reward.txt 0"), trial.Graded, "", 2.0 / 3},
		"named other": {step("two", `["print x"]`, `write verifier/reward.json {"other":1}`), trial.Graded, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			j := multi(t, good, c.second, last)
			j.Run.Run.Grade.PassThreshold = 0.9
			got := j.run(t, t.Context())
			if got.Ending != c.ending || !strings.HasPrefix(got.Outcome.Detail, c.detail) {
				t.Errorf("%s: %q; want %s: %q", got.Ending, got.Outcome.Detail, c.ending, c.detail)
			}
			if c.score < 0 {
				if g := got.Grade; g.Score != nil || g.Steps != nil || g.Rewards != nil || !strings.Contains(g.Reasons, "one 1") {
					t.Errorf("grade %+v; want no number, and the score of step one in the reasons", g)
				}
				return
			}
			if d := *got.Grade.Score - c.score; d > 1e-9 || d < -1e-9 {
				t.Errorf("score %v, want %v", *got.Grade.Score, c.score)
			}
			equal(t, "pass", c.score >= 0.9, got.Grade.BinaryPass)
			if name == "named other" {
				equal(t, "primary", "", got.Grade.Primary)
			}
			if name == "own word" {
				// It was the word of step two; the last one gave none.
				equal(t, "reason", "agent_done", got.Outcome.TerminationReason)
			}
		})
	}
}

// The files of task and agent come once, those of a step with it.
func TestStepFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"task/a", "agent/b", "step/c"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("new"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	one := step("one", `["read a","read ./agent/b","require-no-file c","write a changed","write ./agent/b changed"]`, "write verifier/reward.txt 1")
	two := step("two", `["read a","read ./agent/b","read c"]`, "write verifier/reward.txt 1")
	two.Files = filepath.Join(dir, "step")
	j := multi(t, one, two)
	j.Task.Files, j.AgentFiles, j.AgentFilesName = filepath.Join(dir, "task"), filepath.Join(dir, "agent"), "agent"
	got := j.run(t, t.Context())
	equal(t, "agent.log", []string{"step 1-one", "newnew", "step 2-two", "changedchangednew"}, lines(got.files["logs/agent.log"]))
}

// A task of many steps that all pass, passes.
func TestManyPerfectSteps(t *testing.T) {
	var steps []manifest.Step
	for range 10 {
		steps = append(steps, step("", `["print x"]`, "write verifier/reward.txt 1"))
	}
	if got := multi(t, steps...).run(t, t.Context()); !got.Grade.BinaryPass {
		t.Errorf("%+v", got.Grade)
	}
}

// A sum of finite scores is finite.
func TestHugeScores(t *testing.T) {
	huge := step("huge", `["print x"]`, "write verifier/reward.txt 1.7e308")
	got := multi(t, huge, huge, huge).run(t, t.Context())
	if s := *got.Grade.Score; s > 1.7e308*1.001 || s < 1.6e308 {
		t.Errorf("score %v", s)
	}
}
