// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"testing"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
)

func TestScoresOfSteps(t *testing.T) {
	half := 0.5
	steps := func() []manifest.Step {
		return []manifest.Step{
			step("scaffold", `["print x"]`, `write verifier/reward.json {"reward":1,"style":0.5}`),
			step("implement", `["print x"]`, `write verifier/reward.json {"reward":0.25}`),
			step("document", `["print x"]`, `write verifier/reward.json {"reward":0.75,"style":1}`),
		}
	}
	for name, c := range map[string]struct {
		how     string
		stop    bool // after the second
		score   float64
		rewards map[string]float64
	}{
		"the mean of all":                       {manifest.MeanOfAll, false, 2.0 / 3, map[string]float64{"reward": 2.0 / 3, "style": 0.5}},
		"the mean of all, one not reached":      {manifest.MeanOfAll, true, 1.25 / 3, map[string]float64{"reward": 1.25 / 3, "style": 0.5 / 3}},
		"the mean of those graded":              {manifest.MeanOfGraded, false, 2.0 / 3, map[string]float64{"reward": 2.0 / 3, "style": 0.5}},
		"the mean of those graded, and no more": {manifest.MeanOfGraded, true, 0.625, map[string]float64{"reward": 0.625, "style": 0.25}},
		"the last":                              {manifest.LastGraded, false, 0.75, map[string]float64{"reward": 0.75, "style": 1}},
		"the last that was graded":              {manifest.LastGraded, true, 0.25, map[string]float64{"reward": 0.25}},
	} {
		t.Run(name, func(t *testing.T) {
			j := multi(t, steps()...)
			j.Task.StepScores = c.how
			if c.stop {
				j.Task.Steps[1].MinReward = &half
			}
			got := j.run(t, t.Context())
			equal(t, "score", c.score, *got.Grade.Score)
			equal(t, "rewards", c.rewards, got.Grade.Rewards)
			equal(t, "primary", "reward", got.Grade.Primary)
			want := 3
			if c.stop {
				want = 2
			}
			equal(t, "steps", want, len(got.Grade.Steps))
		})
	}
}

// A step that was the last one by the agent's own doing counts 0, however scores are made.
func TestScoreOfASickStep(t *testing.T) {
	for how, want := range map[string]float64{manifest.MeanOfAll: 1.0 / 3, manifest.MeanOfGraded: 0.5, manifest.LastGraded: 0} {
		good := step("one", `["print x"]`, "write verifier/reward.txt 1")
		j := multi(t, good, good, good)
		j.Task.StepScores = how
		j.Task.Steps[1].Healthcheck = &manifest.Healthcheck{Command: argv("exit 1"), Retries: 1}
		if got := j.run(t, t.Context()); *got.Grade.Score != want {
			t.Errorf("%q: score %v, want %v", how, *got.Grade.Score, want)
		}
	}
}

func TestLeastRewards(t *testing.T) {
	for name, c := range map[string]struct {
		verdict string
		least   map[string]float64
		goes    bool
	}{
		"enough of each":  {`{"reward":0,"safety":1}`, map[string]float64{"safety": 1, "reward": 0}, true},
		"too little":      {`{"reward":1,"safety":0.5}`, map[string]float64{"safety": 1}, false},
		"one is missing":  {`{"reward":1}`, map[string]float64{"safety": 0}, false},
		"none is given":   {`{"reward":-1}`, nil, true},
		"any of them do":  {`{"reward":1,"safety":1,"speed":0}`, map[string]float64{"safety": 1, "speed": 0.1}, false},
		"the exact value": {`{"reward":0.1}`, map[string]float64{"reward": 0.1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			j := multi(t, step("one", `["print x"]`, "write verifier/reward.json "+c.verdict), step("two", `["print x"]`, "write verifier/reward.txt 1"))
			j.Task.Steps[0].MinRewards = c.least
			got := j.run(t, t.Context())
			if got.Ending != trial.Graded || (len(got.Grade.Steps) == 2) != c.goes {
				t.Errorf("%s, steps %+v; want it to go on: %t", got.Ending, got.Grade.Steps, c.goes)
			}
		})
	}
}
