// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
)

// addVerdict notes the verdict of the current step.
func (a *attempt) addVerdict(rewards map[string]float64, primary string) {
	score := rewards[primary]
	clean := make(map[string]float64, len(rewards))
	for name, v := range rewards {
		clean[a.redact.String(name)] = v
	}
	primary = a.redact.String(primary)
	a.last = primary
	if len(a.grade.Steps) > 0 && primary != a.grade.Primary {
		primary = "" // the steps don't agree: the score has no name
	}
	a.grade.Primary = primary
	a.grade.Steps = append(a.grade.Steps, bundle.StepGrade{Name: a.step.Name, Score: &score, Rewards: clean})
}

// addZero is the verdict of a step that nobody could grade, by the agent's own doing.
func (a *attempt) addZero(why string) {
	a.grade.Primary, a.last = "", ""
	a.grade.Steps = append(a.grade.Steps, bundle.StepGrade{Name: a.step.Name, Score: new(float64)})
	a.grade.Reasons = why
}

// endsHere reports whether the task ends early: the step's score, or one of its rewards,
// is too low to go on.
func (a *attempt) endsHere() bool {
	last := a.grade.Steps[len(a.grade.Steps)-1]
	if a.step.MinReward != nil && *last.Score < *a.step.MinReward {
		return true
	}
	for name, least := range a.step.MinRewards {
		if v, ok := last.Rewards[a.redact.String(name)]; !ok || v < least {
			return true
		}
	}
	return false
}

// counted returns the steps that make the score of the trial, and by how many their
// sum is divided.
func (a *attempt) counted() (steps []bundle.StepGrade, n int) {
	steps = a.grade.Steps
	switch a.Task.StepScores {
	case manifest.LastGraded:
		a.grade.Primary = a.last
		return steps[len(steps)-1:], 1
	case manifest.MeanOfGraded:
		return steps, len(steps)
	default: // what was not reached counts 0
		return steps, len(a.Task.Steps)
	}
}

// finishGrade makes the score of the trial: that of its only step, or what the task makes
// of those of several. The rewards are made in the same way.
func (a *attempt) finishGrade() {
	var scores []float64
	rewards := map[string][]float64{}
	steps, n := a.counted()
	for _, s := range steps {
		scores = append(scores, *s.Score)
		for name, v := range s.Rewards {
			rewards[name] = append(rewards[name], v)
		}
	}
	score := meanOf(scores, n)
	a.grade.Scored, a.grade.Score = true, &score
	a.grade.BinaryPass = score >= a.grade.PassThreshold
	if len(rewards) > 0 {
		a.grade.Rewards = map[string]float64{}
	}
	for name, list := range rewards {
		a.grade.Rewards[name] = meanOf(list, n)
	}
	if len(a.Task.Steps) == 1 {
		a.grade.Steps = nil // says nothing more than the grade itself
	}
}

// meanOf is the sum of the numbers divided by n, so that n times 1 is 1. It is finite
// where they are.
func meanOf(list []float64, n int) float64 {
	var sum, parts float64
	for _, v := range list {
		sum += v
		parts += v / float64(n)
	}
	if math.IsInf(sum, 0) {
		return max(-math.MaxFloat64, min(parts, math.MaxFloat64))
	}
	return sum / float64(n)
}

// dropGrade takes all numbers out of a grade that doesn't count; what was graded before
// the failure is still told.
func (a *attempt) dropGrade(why string) {
	var before []string
	for _, s := range a.grade.Steps {
		before = append(before, s.Name+" "+strconv.FormatFloat(*s.Score, 'g', -1, 64))
	}
	if a.grade.Reasons != "" {
		why = a.grade.Reasons
	}
	if len(before) > 0 {
		why += fmt.Sprintf(" (scores of the steps before: %s)", strings.Join(slices.Clip(before), ", "))
	}
	a.grade = bundle.Grade{PassThreshold: a.grade.PassThreshold, Reasons: why}
}
