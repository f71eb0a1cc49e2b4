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
	if a.solved {
		if err := a.takeAway(ctx, runtime.Solution); err != nil {
			return a.trouble(ctx, PhaseGrade, err, InfraFailed)
		}
		a.solved = false
	}
	if err := a.bring(ctx, runtime.Tests, a.step.Grade, user); err != nil {
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

// readVerdict reads reward.txt, else reward.json. A grader that says by its exit code
// that it crashed gives no verdict, whatever it wrote before, unless its task says that
// the code means nothing: test runners end with 1 when tests fail. A limit that something
// below it ran into decides nothing: else an agent could spoil its grading by leaving a
// program that uses up memory.
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
		return bad(fmt.Errorf("the grader left neither %s nor %s in %s%s", RewardText, RewardJSON, verdictDir, a.misplaced(ctx)))
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
	if exit.Code != 0 && !a.step.IgnoreExitCode {
		return bad(fmt.Errorf("the grader crashed after it left a verdict in %s, which doesn't count", name))
	}
	a.used["verifier/"+name] = true
	a.addVerdict(rewards, primary)
	return nil
}

// verdictDir is where a verdict belongs, as a grader finds it.
const verdictDir = "$TIDEMILL_LOGS_DIR/verifier"

// misplaced says where a verdict lies that isn't where it belongs. It never counts: an
// agent could have left it.
func (a *attempt) misplaced(ctx context.Context) string {
	for _, name := range []string{RewardText, RewardJSON} {
		for _, at := range []struct {
			place runtime.Place
			shown string
		}{{runtime.Workdir, "the workdir"}, {runtime.Logs, "$TIDEMILL_LOGS_DIR"}} {
			if _, err := a.readFile(ctx, at.place, name, maxReport); err == nil || errors.Is(err, errUnfit) {
				return fmt.Sprintf("; there is a %s in %s, where it doesn't count", name, at.shown)
			}
		}
	}
	return ""
}

// keepsProcesses reports whether the agent's processes go on while the grader works.
func (a *attempt) keepsProcesses() bool {
	return cmp.Or(a.Run.Run.AgentProcesses, a.Task.AgentProcesses, "end") == "keep"
}
