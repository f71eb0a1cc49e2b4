// SPDX-License-Identifier: Apache-2.0

package manifest

// TaskRef points at a task inside its pack.
type TaskRef struct {
	ID string
	// Offset and Length locate the row in the uncompressed dataset, in bytes, and
	// Line is its number, counted from 1. Dataset packs only.
	Offset, Length int64
	Line           int
	// Dir is the task's directory, relative to the archive of the pack. Packs of
	// directories only.
	Dir string

	// loaded is the task where it was just read; of its pack alone.
	loaded *harborLoad
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
	// Build makes the image of a task that names none; nil without.
	Build *Build
	// Workdir is where commands run, absolute inside the sandbox; empty is the image's, or
	// the runtime's.
	Workdir string
	// Network is what the task asks for in each phase. It counts where the run leaves the
	// network to its tasks, with [TaskNetwork]. Empty means that the task says nothing.
	Network map[string]Network
	// Healthcheck has to succeed before the first step begins; nil without.
	Healthcheck *Healthcheck
	// Env is given to every command of the trial.
	Env map[string]string
	// SecretEnv are further variables of that kind whose values need secrets, by name; see
	// [Task.WithSecrets].
	SecretEnv map[string]string
	// AgentProcesses is end or keep.
	AgentProcesses string
	// Files is an absolute directory whose content is copied into the workdir before
	// the agent starts; empty without.
	Files string
	// Artifacts are globs in the workdir, beside the run's.
	Artifacts []string
	// Collect are files and directories anywhere in the sandbox that are kept at the end of
	// each step.
	Collect []Collect
	// Regrade is [FromArtifacts] where what is collected is enough to grade the task once
	// more, else empty.
	Regrade string
	// Steps run one after the other; there is at least one.
	Steps []Step
	// StepScores says how the scores of several steps make the score of the trial; empty is
	// [MeanOfAll].
	StepScores string
	// Warnings are what is odd about the task and keeps nobody from running it.
	Warnings Problems
}

// How the scores of steps make a score.
const (
	// MeanOfAll is the mean over all steps of the task; those that were not reached count 0.
	MeanOfAll = ""
	// MeanOfGraded is the mean over the steps that were graded. What a reward misses in one
	// of them counts 0.
	MeanOfGraded = "mean"
	// LastGraded is the score of the last step that was graded.
	LastGraded = "final"
)

// Step is one round of setup, agent and grade.
type Step struct {
	// Name is empty for the only step of a task.
	Name        string
	Instruction string
	// AgentRow is what the agent sees of a dataset row, Row all of it; JSON, nil
	// for other packs.
	AgentRow []byte
	Row      []byte
	// Input are further files beside the instruction, by name; nil without.
	Input map[string][]byte
	// Files is copied into the workdir before this step; absolute, empty without.
	Files string
	Setup *Program
	// Healthcheck has to succeed after the setup, before the agent begins; nil without.
	Healthcheck *Healthcheck
	// Collect is what is kept at the end of this step, beside the task's.
	Collect []Collect
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
	// MinRewards ends it early when one of these rewards is below its number, or missing.
	MinRewards map[string]float64
}

// Program is a command with the files that arrive for it.
type Program struct {
	Command []string
	// Files is an absolute directory; empty without. It is copied to the place of the
	// phase: tests for the grader, solution for the oracle.
	Files string
	// Base is another one, which is copied there first: where both have a file of a name,
	// that of Files is there in the end.
	Base string
	Env  map[string]string
	// SecretEnv is as that of the task.
	SecretEnv map[string]string
	User      string
	Timeout   Duration
}

// Build says how an image is made.
type Build struct {
	// Context is an absolute directory; Dockerfile is relative to it.
	Context    string
	Dockerfile string
	// Timeout of the whole build; 0 is the runtime's default.
	Timeout Duration
}

// Network is a policy with the hosts that it allows, where it is limited_internet.
type Network struct {
	Policy string   `yaml:"policy"`
	Allow  []string `yaml:"allow,omitempty"`
}

// Healthcheck is a command that is tried until it ends with 0, by the rules of Docker's
// HEALTHCHECK: failures within StartPeriod don't count, and Retries failures in a row
// after it end the waiting.
type Healthcheck struct {
	Command       []string
	Interval      Duration
	Timeout       Duration // of one try
	StartPeriod   Duration
	StartInterval Duration // between tries within StartPeriod
	Retries       int
}

// Collect is something to keep from anywhere in the sandbox.
type Collect struct {
	// Source is absolute inside the sandbox, or relative to the workdir.
	Source string
	// Destination is below the artifacts of the step, relative; empty is the last name of
	// Source.
	Destination string
}
