// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

// Names of the reports, below the run.
const (
	AggregateFile = "aggregate.json"
	PerTaskFile   = "per_task_metrics.json"
	SlicesFile    = "metadata_slices.json"
	FailuresFile  = "failure_attribution.json"

	// Sidecars exist only where a list is longer than [MaxListed].
	MissingSidecar  = "missing_trials.jsonl"
	FailuresSidecar = "failure_attribution.jsonl"
	CapturesSidecar = "captured_service_logs.jsonl"
)

// Sidecars are the names of all sidecars.
var Sidecars = []string{MissingSidecar, FailuresSidecar, CapturesSidecar}

// Aggregate is aggregate.json. Its keys are always all present; docs/aggregate.md
// describes each.
type Aggregate struct {
	SchemaVersion int    `json:"schema_version"`
	RunID         string `json:"run_id"`
	Group         string `json:"group"`
	// Matrix has the values of a run of a matrix, by variable.
	Matrix      map[string]string `json:"matrix"`
	Name        string            `json:"name"`
	Agent       string            `json:"agent"`
	PlanDigest  string            `json:"plan_digest"`
	Repeats     int               `json:"repeats"`
	GeneratedBy string            `json:"generated_by"`
	CreatedAt   time.Time         `json:"created_at"`
	// AsOf is the time of the newest commit. No clock is read for a report.
	AsOf *time.Time `json:"as_of"`
	// Complete: every planned trial has the commit of its current epoch.
	Complete bool   `json:"complete"`
	Ended    *Ended `json:"ended"`

	Committed int64    `json:"committed"`
	Scored    int64    `json:"scored"`
	Unscored  int64    `json:"unscored"`
	Passed    int64    `json:"passed"`
	Missing   Missing  `json:"missing"`
	Outcomes  Outcomes `json:"outcomes"`
	// AgentNonzeroExits is how many committed trials have an agent that ended with an
	// exit code other than 0 or by a signal.
	AgentNonzeroExits       int64    `json:"agent_nonzero_exits"`
	AgentNonzeroExitExample *Example `json:"agent_nonzero_exit_example"`

	SuccessRate       *float64  `json:"success_rate"`
	SuccessRateCI95   *Interval `json:"success_rate_ci95"`
	SuccessRateStderr *float64  `json:"success_rate_stderr_clustered"`
	Bounds            *Bounds   `json:"bounds"`
	AvgScore          *float64  `json:"avg_score"`
	AvgScoreStderr    *float64  `json:"avg_score_stderr_clustered"`
	PassK             []PassK   `json:"pass_k"`
	LatencyP50S       float64   `json:"latency_p50_s"`
	LatencyP90S       float64   `json:"latency_p90_s"`
	LatencyP99S       float64   `json:"latency_p99_s"`

	Core

	Attempts            Attempts `json:"attempts"`
	Epochs              Epochs   `json:"epochs"`
	CapturedServiceLogs Captures `json:"captured_service_logs"`

	Tasks []Task `json:"tasks"`
	// TasksSidecar names the file that has all tasks when Tasks has not.
	TasksSidecar *string `json:"tasks_sidecar"`
}

// Core are the numbers that the reference computes, for a run and for each of its
// slices alike.
type Core struct {
	TotalTasks  int64 `json:"total_tasks"`
	TotalTrials int64 `json:"total_trials"`

	SuccessRateMicro *float64 `json:"success_rate_micro"`
	AvgScoreMicro    *float64 `json:"avg_score_micro"`
	SuccessRateMacro *float64 `json:"success_rate_macro"`
	AvgScoreMacro    *float64 `json:"avg_score_macro"`

	PassAt1Macro   *float64 `json:"pass@1_macro"`
	PassAt5Macro   *float64 `json:"pass@5_macro"`
	PassAt10Macro  *float64 `json:"pass@10_macro"`
	PassHat1Macro  *float64 `json:"pass_hat@1_macro"`
	PassHat5Macro  *float64 `json:"pass_hat@5_macro"`
	PassHat10Macro *float64 `json:"pass_hat@10_macro"`

	AvgLatencyS  float64 `json:"avg_latency_s"`
	AvgTurns     float64 `json:"avg_turns"`
	AvgToolCalls float64 `json:"avg_tool_calls"`
	StuckRate    float64 `json:"stuck_rate"`

	TotalPromptTokens             int64 `json:"total_prompt_tokens"`
	TotalCompletionTokens         int64 `json:"total_completion_tokens"`
	TotalReasoningTokens          int64 `json:"total_reasoning_tokens"`
	TotalCachedTokens             int64 `json:"total_cached_tokens"`
	TotalCacheCreationInputTokens int64 `json:"total_cache_creation_input_tokens"`
	TotalCacheReadInputTokens     int64 `json:"total_cache_read_input_tokens"`

	AvgUsage

	TotalCostUSD *float64 `json:"total_cost_usd"`
	AvgCostUSD   *float64 `json:"avg_cost_usd"`

	LatencyP50SMacro float64 `json:"latency_p50_s_macro"`
	LatencyP90SMacro float64 `json:"latency_p90_s_macro"`
	LatencyP99SMacro float64 `json:"latency_p99_s_macro"`
}

// AvgUsage are mean tokens.
type AvgUsage struct {
	AvgPromptTokens             float64 `json:"avg_prompt_tokens"`
	AvgCompletionTokens         float64 `json:"avg_completion_tokens"`
	AvgReasoningTokens          float64 `json:"avg_reasoning_tokens"`
	AvgCachedTokens             float64 `json:"avg_cached_tokens"`
	AvgCacheCreationInputTokens float64 `json:"avg_cache_creation_input_tokens"`
	AvgCacheReadInputTokens     float64 `json:"avg_cache_read_input_tokens"`
}

// Ended says that a decision from outside ended the run before its plan did.
type Ended struct {
	Kind   string    `json:"kind"` // of the control record: cancel or stop
	Rev    int       `json:"rev"`
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

// Missing are the planned trials that count as open: without a commit, or with one
// that can't be read.
type Missing struct {
	Count      int64          `json:"count"`
	Unreadable int64          `json:"unreadable"`
	Trials     []MissingTrial `json:"trials"`
	Sidecar    *string        `json:"sidecar"`
}

// MissingTrial is one of them.
type MissingTrial struct {
	TaskID     string `json:"task_id"`
	TrialIndex int    `json:"trial_index"`
	TrialID    string `json:"trial_id"`
	Epoch      int    `json:"epoch"`
	// Problem tells why a commit that is there doesn't count.
	Problem string `json:"problem,omitempty"`
}

// Outcomes counts committed trials. A word that the agent chose is a word like any
// other; distinct ones beyond 200 are counted as "(other)".
type Outcomes struct {
	ByStatus            map[string]int64 `json:"by_status"`
	ByTerminationReason map[string]int64 `json:"by_termination_reason"`
	ByFailureClass      map[string]int64 `json:"by_failure_class"`
	// UnscoredByReason counts only those without a score.
	UnscoredByReason map[string]int64 `json:"unscored_by_reason"`
	// UnscoredExamples has a trial for each of these reasons.
	UnscoredExamples map[string]*Example `json:"unscored_examples"`
}

// Attempts tells what the committed trials took.
type Attempts struct {
	// Total is the sum of the numbers of the attempts that count. An attempt that was
	// superseded after the commit is not in it.
	Total int64 `json:"total"`
	// Wasted is how many of these are not the one that counts.
	Wasted int64 `json:"wasted"`
	// RetriedTrials is how many trials took more than one.
	RetriedTrials int64 `json:"retried_trials"`
}

// Epochs tells how far trials were put back on purpose.
type Epochs struct {
	// Newest is the highest current epoch of any trial; 1 when none was put back.
	Newest int `json:"newest"`
	// Reopened is how many trials have a current epoch above 1.
	Reopened int64 `json:"reopened"`
	// Open is how many show an older epoch while the current one has no commit yet.
	Open int64 `json:"open"`
	// Regraded is how many show the verdict of a regrade.
	Regraded int64 `json:"regraded"`
	// RegradedBy counts these by the sha256 of the pack whose grader judged.
	RegradedBy map[string]int64 `json:"regraded_by"`
}

// Decode reads an aggregate.json. Unknown keys are passed over; a newer schema is a
// [bundle.VersionError].
func Decode(body []byte) (*Aggregate, error) {
	agg, err := bundle.DecodeRecord[Aggregate](body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", AggregateFile, err)
	}
	return &agg, nil
}
