// SPDX-License-Identifier: Apache-2.0

package manifest

import "time"

// Version is the version of the run file and pack formats that this package writes.
const Version = 1

// Run is a run file, completed: variables expanded, defaults filled in, paths made
// absolute. The YAML keys are the run file's.
type Run struct {
	Version int    `yaml:"version"`
	Name    string `yaml:"name"`
	// Packs are directories.
	Packs  []string `yaml:"packs"`
	Select Select   `yaml:"select,omitempty"`
	// Repeats is trials per task. Defaults to 1.
	Repeats int `yaml:"repeats"`
	// Matrix gives values to variables; each combination is a run of its own. In a
	// loaded run it holds the one value that this run has.
	Matrix map[string][]string `yaml:"matrix,omitempty"`
	Agent  Agent               `yaml:"agent"`
	Grade  GradeRule           `yaml:"grade"`
	// Runtime says where trials run.
	Runtime RuntimeConfig `yaml:"runtime"`
	// NetworkPolicy defaults to no_internet, except that a subprocess run has no
	// default: the file names it. Where every pack is of Harbor tasks, which say
	// themselves what they need, it defaults to [TaskNetwork].
	NetworkPolicy            string   `yaml:"network_policy"`
	LimitedInternetAllowlist []string `yaml:"limited_internet_allowlist,omitempty"`
	// TaskSecrets are names of variables that tasks may take from the worker's environment,
	// where they ask for them: the key of a model that grades.
	TaskSecrets []string `yaml:"task_secrets,omitempty"`
	// AgentProcesses is end or keep; empty is the task format's default.
	AgentProcesses string  `yaml:"agent_processes,omitempty"`
	Retry          Retry   `yaml:"retry"`
	Limits         Limits  `yaml:"limits,omitempty"`
	Capture        Capture `yaml:"capture"`
	Storage        Storage `yaml:"storage,omitempty"`
	// Pool defaults to default, Priority to normal.
	Pool     string `yaml:"pool"`
	Priority string `yaml:"priority"`

	// File is where the run was read from; not part of it.
	File string `yaml:"-"`
	// Uses are the variables that the file and the pack.yaml of its packs name; not part of
	// it.
	Uses []string `yaml:"-"`
}

// TaskNetwork under network_policy leaves the network to the tasks: each phase has what
// its task asks for, no_internet where it asks for nothing.
const TaskNetwork = "task"

// Select narrows the tasks of the packs.
type Select struct {
	// Tasks are globs over task ids, where * matches any text, "/" too. Empty means
	// all.
	Tasks   []string `yaml:"tasks,omitempty"`
	Exclude []string `yaml:"exclude,omitempty"`
	// Limit is how many tasks to take at most, in their order. 0 means all.
	Limit int `yaml:"limit,omitempty"`
}

// The agents that need no command.
const (
	OracleAgent = "oracle"
	NopAgent    = "nop"
)

// Agent is the program under evaluation.
type Agent struct {
	Name string `yaml:"name"`
	// Command is run verbatim in the workdir, but for ${TIDEMILL_…}, which stand for
	// what the program would see in its environment.
	Command []string `yaml:"command,omitempty"`
	// Files is a directory that is copied into the workdir under its own name.
	Files string            `yaml:"files,omitempty"`
	Env   map[string]string `yaml:"env,omitempty"`
	// Secrets are names of variables whose values the worker takes from its own
	// environment.
	Secrets []string `yaml:"secrets,omitempty"`
	// Timeout defaults to the task's, else 30 minutes.
	Timeout Duration `yaml:"timeout,omitempty"`
}

// GradeRule says which number is the score, and when a trial passes.
type GradeRule struct {
	// Primary names the reward that is the score. Defaults to reward, or to the only
	// one there is.
	Primary string `yaml:"primary,omitempty"`
	// PassThreshold defaults to 1.0.
	PassThreshold float64 `yaml:"pass_threshold"`
	// Timeout defaults to the task's, else 10 minutes.
	Timeout Duration `yaml:"timeout,omitempty"`
}

// RuntimeConfig says where trials run and what they may use.
type RuntimeConfig struct {
	Type      string         `yaml:"type"`
	Image     string         `yaml:"image,omitempty"`
	Resources Resources      `yaml:"resources,omitempty"`
	Options   map[string]any `yaml:"options,omitempty"`
	// Timeout bounds provisioning. Defaults to 10 minutes.
	Timeout Duration `yaml:"timeout,omitempty"`
}

// Resources are upper bounds; zero means none asked for.
type Resources struct {
	CPUs     float64  `yaml:"cpus,omitempty"`
	Memory   Size     `yaml:"memory,omitempty"`
	Disk     Size     `yaml:"disk,omitempty"`
	Pids     int64    `yaml:"pids,omitempty"`
	Files    int64    `yaml:"files,omitempty"`
	Shm      Size     `yaml:"shm,omitempty"`
	GPUs     int      `yaml:"gpus,omitempty"`
	GPUTypes []string `yaml:"gpu_types,omitempty"`
}

// Retry says what is tried again.
type Retry struct {
	// MaxAttempts counts charged attempts. Defaults to 3.
	MaxAttempts int `yaml:"max_attempts"`
	// On are failure classes to retry. Defaults to infra and provider.
	On []string `yaml:"on,omitempty"`
	// MinBackoff and MaxBackoff bound the wait before a retry, which doubles each
	// time and has full jitter. Default to 1s and 5m.
	MinBackoff Duration `yaml:"min_backoff,omitempty"`
	MaxBackoff Duration `yaml:"max_backoff,omitempty"`
}

// Limits bound a run. Zero means none.
type Limits struct {
	MaxInFlight        int     `yaml:"max_in_flight,omitempty"`
	MaxStartsPerSecond float64 `yaml:"max_starts_per_second,omitempty"`
	// MaxBudgetUSD is what agents may report to have spent in all before no trial begins
	// any more.
	MaxBudgetUSD float64 `yaml:"max_budget_usd,omitempty"`
	// Deadline counts from the run's creation.
	Deadline Duration `yaml:"deadline,omitempty"`
	Breaker  Breaker  `yaml:"breaker,omitempty"`
}

// Breaker pauses a run of which too many attempts fail for want of infrastructure. The
// zero value has the defaults.
type Breaker struct {
	// MaxInfraShare of the attempts that end within the window. Defaults to 0.5; 1 is
	// never exceeded.
	MaxInfraShare float64 `yaml:"max_infra_share,omitempty"`
	// MinAttempts have to end within the window before the share says anything. Defaults
	// to 20.
	MinAttempts int `yaml:"min_attempts,omitempty"`
	// Window defaults to 5m.
	Window Duration `yaml:"window,omitempty"`
}

// Capture says what evidence is kept beyond logs.
type Capture struct {
	// LogTail is how many lines of each service's log are kept. Defaults to 500.
	LogTail   int  `yaml:"log_tail"`
	OnSuccess bool `yaml:"on_success,omitempty"`
	// Artifacts are globs of files in the workdir to keep, beside what is left in the
	// artifacts directory.
	Artifacts []string `yaml:"artifacts,omitempty"`
	// MaxArtifactBytes defaults to 100 MiB a trial, MaxArtifacts to 1000 files.
	MaxArtifactBytes Size `yaml:"max_artifact_bytes,omitempty"`
	MaxArtifacts     int  `yaml:"max_artifacts,omitempty"`
	// MaxLogBytes is what is kept of each of agent.log and grader.log. Defaults to
	// 10 MiB.
	MaxLogBytes Size `yaml:"max_log_bytes,omitempty"`
}

// Storage names another place for results than the command's.
type Storage struct {
	Artifacts *StorageTarget `yaml:"artifacts,omitempty"`
}

// StorageTarget is a store, without credentials.
type StorageTarget struct {
	Type     string `yaml:"type"` // local or s3
	Path     string `yaml:"path,omitempty"`
	Bucket   string `yaml:"bucket,omitempty"`
	Prefix   string `yaml:"prefix,omitempty"`
	Endpoint string `yaml:"endpoint,omitempty"`
	Region   string `yaml:"region,omitempty"`
}

// RunRecord is run.yaml in a store: a run as it was submitted. It holds names of
// secrets, never values.
type RunRecord struct {
	SchemaVersion int       `yaml:"schema_version"`
	RunID         string    `yaml:"run_id"`
	Group         string    `yaml:"group,omitempty"`
	CreatedAt     time.Time `yaml:"created_at"`
	// Nonce is new in each submission, so that of two in one moment each knows whose record
	// is in the store.
	Nonce    string    `yaml:"nonce,omitempty"`
	Producer string    `yaml:"producer"` // version of the program
	Plan     Plan      `yaml:"plan"`
	Packs    []PackRef `yaml:"packs"`
	// AgentFiles is the digest of the archive of agent.files, empty without.
	AgentFiles string `yaml:"agent_files,omitempty"`
	// Asks is what the run's tasks ask of the runtime themselves.
	Asks Asks `yaml:"asks,omitempty"`
	Run  Run  `yaml:"run"`
}

// Plan describes the plan of a run.
type Plan struct {
	// Digest covers packs, tasks, repeats, agent, grade, runtime and policy, nothing
	// else.
	Digest string `yaml:"digest"`
	Tasks  int    `yaml:"tasks"`
	Trials int    `yaml:"trials"`
	Parts  int    `yaml:"parts"`
}

// PackRef names a pack by content.
type PackRef struct {
	Name   string `yaml:"name"`
	SHA256 string `yaml:"sha256"`
	Tasks  int    `yaml:"tasks"`
}

// Asks is what the tasks of a run ask of its runtime beside what the run says, all of them
// together. It is empty for datasets.
type Asks struct {
	// Networks are the policies of all phases, where the run leaves them to its tasks: one
	// for each policy, with the hosts of the first task that has them.
	Networks []Network `yaml:"networks,omitempty"`
	// Users are those of all phases.
	Users []string `yaml:"users,omitempty"`
	// GPUs is what the task that wants most of them wants.
	GPUs int `yaml:"gpus,omitempty"`
}
