// SPDX-License-Identifier: Apache-2.0

package manifest

// TaskRef points at a task inside its pack.
type TaskRef struct {
	ID string
	// Offset and Length locate the row in the uncompressed dataset, in bytes, and
	// Line is its number, counted from 1. Dataset packs only.
	Offset, Length int64
	Line           int
	// Dir is the task's directory, relative to the pack. Packs of directories only.
	Dir string
}

// Task is one problem, ready to be run: instruction, environment, grader.
type Task struct {
	ID       string
	Category string
	Metadata map[string]any
	// Image, Resources and Users are the task's own wishes.
	Image     string
	Resources Resources
	Users     map[string]string // by phase: setup, agent, grade
	// Env is given to every command of the trial.
	Env map[string]string
	// AgentProcesses is end or keep.
	AgentProcesses string
	// Files is an absolute directory whose content is copied into the workdir before
	// the agent starts; empty without.
	Files string
	// Artifacts are globs in the workdir, beside the run's.
	Artifacts []string
	// Regrade is [FromArtifacts] where what is collected is enough to grade the task once
	// more, else empty.
	Regrade string
	// Steps run one after the other; there is at least one.
	Steps []Step
}

// Step is one round of setup, agent and grade.
type Step struct {
	// Name is empty for the only step of a task.
	Name        string
	Instruction string
	// AgentRow is what the agent sees of a dataset row, Row all of it; JSON, nil
	// for other packs.
	AgentRow []byte
	Row      []byte
	// Files is copied into the workdir before this step; absolute, empty without.
	Files string
	Setup *Program
	// Oracle solves the step; nil when the pack has no solution.
	Oracle *Program
	Grade  Program
	// IgnoreExitCode: a verdict counts whatever the grader's exit code. Without it a code
	// other than 0 says that the grader crashed.
	IgnoreExitCode bool
	// AgentTimeout is what the task allows; 0 leaves it to the run.
	AgentTimeout Duration
	// MinReward ends the task early when the step's score is below it.
	MinReward *float64
}

// Program is a command with the files that arrive for it.
type Program struct {
	Command []string
	// Files is an absolute directory; empty without. It is copied to the place of the
	// phase: tests for the grader, solution for the oracle.
	Files   string
	Env     map[string]string
	User    string
	Timeout Duration
}
