// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// runGrader judges what the agent left. The verdict's directory is made anew, after the
// agent's processes ended, so that nothing that was put there before counts.
func (a *attempt) runGrader(ctx context.Context) *failure {
	a.begin(PhaseGrade)
	start := time.Now()
	defer func() { addSince(&a.metrics.GradingDurationS, start) }()

	if a.keepsProcesses() {
		if len(a.grade.Steps) == 0 {
			a.flag("agent_processes_kept")
		}
	} else if err := a.box.EndProcesses(ctx); err != nil {
		return a.trouble(ctx, PhaseGrade, err, InfraFailed)
	}
	if err := a.box.SetPhase(ctx, runtime.Grade); err != nil {
		return a.trouble(ctx, PhaseGrade, err, InfraFailed)
	}
	user := cmp.Or(a.step.Grade.User, a.Task.Users[string(runtime.Grade)])
	if err := a.bring(ctx, runtime.Tests, a.step.Grade.Files, user); err != nil {
		return a.trouble(ctx, PhaseGrade, err, GraderFailed)
	}
	opts := runtime.CopyOptions{Fresh: true, User: user, Private: true}
	if err := a.box.CopyIn(ctx, runtime.Verdict, nil, opts); err != nil {
		return a.trouble(ctx, PhaseGrade, err, InfraFailed)
	}
	log, f := a.log(&a.gradeLog, "logs/grader.log")
	if f != nil {
		return f
	}
	exit, err := a.exec(ctx, log, runtime.Grade, a.step.Grade, a.gradeEnv(), a.gradeTimeout(a.step))
	if err != nil {
		return a.trouble(ctx, PhaseGrade, err, GraderFailed)
	}
	// A grader's stray children must not write while the verdict is read.
	if !a.keepsProcesses() {
		if err := a.box.EndProcesses(ctx); err != nil {
			return a.trouble(ctx, PhaseGrade, err, InfraFailed)
		}
	}
	if exit.TimedOut || exit.Signal != "" || exit.Exhausted != "" {
		if errors.Is(a.box.Alive(ctx), runtime.ErrLost) {
			return &failure{ending: SandboxLost, phase: PhaseGrade, detail: "the sandbox died while the grader ran"}
		}
		return &failure{ending: GraderFailed, phase: PhaseGrade, detail: "grader " + describe(exit)}
	}
	return a.readVerdict(ctx, exit)
}

// readVerdict reads reward.txt, else reward.json. The grader's exit code decides
// nothing where there is a verdict: test runners end with 1 when tests fail.
func (a *attempt) readVerdict(ctx context.Context, exit runtime.Exit) *failure {
	bad := func(detail string) *failure {
		if !exit.OK() {
			detail += "; the grader " + describe(exit)
		}
		return &failure{ending: GraderFailed, phase: PhaseGrade, detail: detail}
	}
	parse := ParseRewardText
	data, err := a.readFile(ctx, runtime.Verdict, RewardText, maxVerdict)
	if errors.Is(err, runtime.ErrNotExist) {
		parse = ParseRewardJSON
		data, err = a.readFile(ctx, runtime.Verdict, RewardJSON, maxVerdict)
	}
	switch {
	case errors.Is(err, runtime.ErrNotExist):
		return bad("the grader left neither " + RewardText + " nor " + RewardJSON)
	case errors.Is(err, errNotRegular), errors.Is(err, runtime.ErrTooLarge):
		return bad(err.Error())
	case err != nil:
		return a.trouble(ctx, PhaseGrade, err, GraderFailed)
	}
	rewards, err := parse(data)
	if err != nil {
		return bad(err.Error())
	}
	primary, err := primaryReward(rewards, a.Run.Run.Grade.Primary)
	if err != nil {
		return bad(err.Error())
	}
	a.addVerdict(rewards, primary, "")
	return nil
}

// addVerdict notes the verdict of the current step.
func (a *attempt) addVerdict(rewards map[string]float64, primary, why string) {
	score := rewards[primary]
	a.grade.Rewards, a.grade.Primary = rewards, primary
	a.grade.Steps = append(a.grade.Steps, bundle.StepGrade{Name: a.step.Name, Score: &score, Rewards: rewards})
	if why != "" {
		a.grade.Reasons = why
	}
}

// finishGrade makes the score of the trial: that of its only step, or the mean over
// all steps of the task, those that were not reached counting 0.
func (a *attempt) finishGrade() {
	var sum float64
	for _, s := range a.grade.Steps {
		sum += *s.Score
	}
	score := sum / float64(len(a.Task.Steps))
	a.grade.Scored, a.grade.Score = true, &score
	a.grade.BinaryPass = score >= a.grade.PassThreshold
	if len(a.Task.Steps) == 1 {
		a.grade.Steps = nil // says nothing more than the grade itself
	}
}

func (a *attempt) gradeTimeout(s *manifest.Step) time.Duration {
	return cmp.Or(a.Run.Run.Grade.Timeout.D(), s.Grade.Timeout.D(), DefaultGradeTimeout)
}
