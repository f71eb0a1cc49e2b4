// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// onlyStep is a task without steps.
func (l *harborLoad) onlyStep() Step {
	f, d := &l.file, l.d
	if d.given("multi_step_reward_strategy") {
		l.strategy()
	}
	s := l.step("", l.task.Healthcheck)
	s.Healthcheck = nil // the task's
	s.Oracle = l.oracle("")
	s.Grade = l.grader("", Program{
		User:    string(f.Verifier.User),
		Timeout: seconds(d.or("verifier.timeout_sec", f.Verifier.Timeout, harborVerifyTimeout)),
	})
	s.Grade.Env, s.Grade.SecretEnv = l.env.table("verifier.env", f.Verifier.Env, nil, nil)
	s.AgentTimeout = seconds(f.Agent.Timeout)
	return s
}

// step is what all steps have. dir is relative to the task.
func (l *harborLoad) step(dir string, h *Healthcheck) Step {
	return Step{
		Instruction: l.instruction(filepath.Join(dir, instructionName)), Input: l.input(),
		Healthcheck: h, IgnoreExitCode: true,
	}
}

// strategy says how the scores of the steps make one.
func (l *harborLoad) strategy() string {
	oneOf(l.d, "multi_step_reward_strategy", l.file.StepRewards, []string{MeanOfGraded, LastGraded})
	return cmp.Or(l.file.StepRewards, MeanOfGraded)
}

func (l *harborLoad) steps() {
	f, d := &l.file, l.d
	l.task.StepScores = l.strategy()
	plain, secret := l.env.table("verifier.env", f.Verifier.Env, nil, nil)
	seen := map[string]bool{}
	for i, hs := range f.Steps {
		entry := index("steps", i)
		if text, fix := l.badStep(hs.Name, seen); text != "" {
			d.problem(join(entry, "name"), text, fix)
			continue
		}
		seen[hs.Name] = true
		dir := filepath.Join(stepsDir, hs.Name)
		s := l.step(dir, l.healthcheck(join(entry, "healthcheck"), hs.Healthcheck))
		s.Name = hs.Name
		l.stepFiles(&s, dir)
		s.Collect = l.collect(join(entry, "artifacts"), hs.Artifacts, l.task.Collect)
		s.Oracle = l.oracle(dir)
		timeout := join(entry, "verifier.timeout_sec")
		positiveNumber(d, timeout, hs.Verifier.Timeout)
		s.Grade = l.grader(dir, Program{
			User:    string(cmp.Or(hs.Verifier.User, f.Verifier.User)),
			Timeout: seconds(d.or(timeout, hs.Verifier.Timeout, d.or("verifier.timeout_sec", f.Verifier.Timeout, harborVerifyTimeout))),
		})
		s.Grade.Env, s.Grade.SecretEnv = l.env.table(join(entry, "verifier.env"), hs.Verifier.Env, plain, secret)
		positiveNumber(d, join(entry, "agent.timeout_sec"), hs.Agent.Timeout)
		s.AgentTimeout = seconds(cmp.Or(hs.Agent.Timeout, f.Agent.Timeout))
		s.MinReward, s.MinRewards = hs.MinReward.score, hs.MinReward.byName
		l.task.Steps = append(l.task.Steps, s)
	}
}

// badStep says what is wrong with the name of a step, which is that of its directory.
func (l *harborLoad) badStep(name string, seen map[string]bool) (text, fix string) {
	switch {
	case name == "":
		return "is missing", "name the step as its directory in steps/"
	case name == "." || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`):
		return quote(name) + " is not the name of a directory", "name the step as its directory in steps/"
	case seen[name]:
		return quote(name) + " is already the name of a step", "name each step once"
	case notDir(filepath.Join(l.dir, stepsDir, name)) != "":
		return "no directory " + filepath.Join(l.shown, stepsDir, name), "make it, with an " + instructionName
	}
	return "", ""
}

// stepFiles is what a step brings into the workdir. Its setup.sh is run there and not taken
// away: Harbor leaves that to the script.
func (l *harborLoad) stepFiles(s *Step, dir string) {
	files := filepath.Join(l.dir, dir, stepWorkdir)
	if notDir(files) != "" {
		return
	}
	s.Files = files
	if isFile(filepath.Join(files, stepSetupFile)) {
		s.Setup = &Program{Command: []string{"bash", "${TIDEMILL_WORKDIR}/" + stepSetupFile}}
	}
}

// grader completes the program that grades. A step's tests lie above those of the task:
// both arrive in one place, and where both have a file the step's is there.
func (l *harborLoad) grader(dir string, p Program) Program {
	own, shared := filepath.Join(l.dir, dir, testsDir), filepath.Join(l.dir, testsDir)
	hasOwn, hasShared := notDir(own) == "", notDir(shared) == ""
	switch {
	case dir == "" || !hasOwn:
		if hasShared {
			p.Files = shared
		}
	case hasShared:
		p.Base, p.Files = shared, own
	default:
		p.Files = own
	}
	for _, at := range []string{own, shared} {
		if file := filepath.Join(at, testFile); isFile(file) {
			p.Command = l.script(file, "${"+testsVariable+"}/"+testFile)
			return p
		}
	}
	l.missing(filepath.Join(dir, testsDir, testFile), "write the script that grades")
	return p
}

// oracle is the solution of a task or step, nil without.
func (l *harborLoad) oracle(dir string) *Program {
	files := filepath.Join(l.dir, dir, solutionDir)
	file := filepath.Join(files, solveFile)
	if !isFile(file) {
		return nil
	}
	p := &Program{Files: files, Command: l.script(file, "${"+solutionVariable+"}/"+solveFile)}
	p.Env, p.SecretEnv = l.env.table("solution.env", l.file.Solution.Env, nil, nil)
	return p
}

// missing tells that a file of the task isn't there.
func (l *harborLoad) missing(name, fix string) {
	l.c.add(Problem{File: filepath.Join(l.shown, name), Text: "no such file", Fix: fix})
}

// instruction reads what the agent is told.
func (l *harborLoad) instruction(name string) string {
	data, err := readSmall(filepath.Join(l.dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.missing(name, "write what the agent is to do")
	case err != nil:
		l.c.add(Problem{File: filepath.Join(l.shown, name), Text: err.Error()})
	case !utf8.Valid(data):
		l.c.add(Problem{File: filepath.Join(l.shown, name), Text: "is not valid UTF-8", Fix: "convert the file to UTF-8"})
	}
	return withoutCanary(strings.TrimPrefix(string(data), byteOrderMark))
}
