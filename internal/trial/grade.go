// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// runGrader judges what the agent left. The verdict's directory is made anew, after the
// agent's processes ended, so that nothing that was put there before counts.
func (a *attempt) runGrader(ctx context.Context) *failure {
	a.begin(PhaseGrade)
	start := time.Now()
	defer func() { addSince(&a.metrics.GradingDurationS, start) }()

	if a.keepsProcesses() {
		a.flag(FlagProcessesKept)
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
	log, f := a.log(PhaseGrade, &a.gradeLog, "logs/grader.log")
	if f != nil {
		return f
	}
	exit, err := a.exec(ctx, log, runtime.Grade, a.step.Grade, a.gradeEnv(), a.gradeTimeout(*a.step))
	if err != nil {
		return a.trouble(ctx, PhaseGrade, err, GraderFailed)
	}
	// A grader's stray children must not write while the verdict is read.
	if !a.keepsProcesses() {
		if err := a.box.EndProcesses(ctx); err != nil {
			return a.trouble(ctx, PhaseGrade, err, InfraFailed)
		}
	}
	if exit.TimedOut || exit.Signal != "" {
		return &failure{ending: GraderFailed, phase: PhaseGrade, detail: "grader " + describe(exit)}
	}
	return a.readVerdict(ctx, exit)
}

// readVerdict reads reward.txt, else reward.json. The grader's exit code decides
// nothing where there is a verdict: test runners end with 1 when tests fail. Nor does
// a limit that something below it ran into: else an agent could spoil its grading by
// leaving a program that uses up memory.
func (a *attempt) readVerdict(ctx context.Context, exit runtime.Exit) *failure {
	bad := func(err error) *failure {
		f := &failure{ending: GraderFailed, phase: PhaseGrade, detail: err.Error()}
		if !exit.OK() || exit.Exhausted != "" {
			f.detail += "; the grader " + describe(exit)
		}
		return f
	}
	name, parse := RewardText, ParseRewardText
	data, err := a.readFile(ctx, runtime.Verdict, name, maxReport)
	if errors.Is(err, runtime.ErrNotExist) {
		name, parse = RewardJSON, ParseRewardJSON
		data, err = a.readFile(ctx, runtime.Verdict, name, maxReport)
	}
	switch {
	case errors.Is(err, runtime.ErrNotExist):
		return bad(fmt.Errorf("the grader left neither %s nor %s", RewardText, RewardJSON))
	case errors.Is(err, errUnfit):
		return bad(err)
	case err != nil:
		return a.trouble(ctx, PhaseGrade, err, GraderFailed)
	}
	rewards, err := parse(data)
	if err != nil {
		return bad(err)
	}
	primary, err := primaryReward(rewards, a.Run.Run.Grade.Primary)
	if err != nil {
		return bad(err)
	}
	a.used["verifier/"+name] = true
	a.addVerdict(rewards, primary)
	return nil
}

// keepsProcesses reports whether the agent's processes go on while the grader works.
func (a *attempt) keepsProcesses() bool {
	return cmp.Or(a.Run.Run.AgentProcesses, a.Task.AgentProcesses, "end") == "keep"
}
