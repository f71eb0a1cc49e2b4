// SPDX-License-Identifier: Apache-2.0

package bundle

// Status is how a trial or attempt ended, in one word.
type Status string

// The statuses.
const (
	Completed Status = "completed"
	Failed    Status = "failed" // other people's bundles; we write completed with a failed grade
	TimedOut  Status = "timeout"
	Errored   Status = "error"
	Cancelled Status = "cancelled"
)

// FailureClass says whose failure it was.
type FailureClass string

// The failure classes.
const (
	NoFailure       FailureClass = "none"
	AgentFailure    FailureClass = "agent"
	TaskFailure     FailureClass = "task"
	ProviderFailure FailureClass = "provider"
	GraderFailure   FailureClass = "grader"
	InfraFailure    FailureClass = "infra"
	LimitFailure    FailureClass = "limit"
)

// Termination reasons that we give. An agent may name others in status.json.
const (
	ReasonAgentDone         = "agent_done"
	ReasonTimeout           = "timeout"
	ReasonResourceExhausted = "resource_exhausted"
	ReasonSetupError        = "setup_error"
	ReasonRateLimit         = "rate_limit"
	ReasonAPITimeout        = "api_timeout"
	ReasonAPIError          = "api_error"
	ReasonGraderError       = "grader_error"
	ReasonProvisionError    = "provision_error"
	ReasonRuntimeLost       = "runtime_lost"
	ReasonInfraError        = "infra_error"
	ReasonPoison            = "poison"
	ReasonCancelled         = "cancelled"
	ReasonDeadline          = "deadline"
	ReasonBudget            = "budget"
)

// Outcome is how an attempt ended.
type Outcome struct {
	Status            Status       `json:"status" yaml:"status"`
	TerminationReason string       `json:"termination_reason" yaml:"termination_reason"`
	FailureClass      FailureClass `json:"failure_class" yaml:"failure_class"`
	// Scored: the trial has a score that counts. Everything else is not a 0.
	Scored bool `json:"scored" yaml:"scored"`
	// Phase that failed, if one did: provision, setup, agent, restore, grade,
	// collect, upload.
	Phase string `json:"phase,omitempty" yaml:"phase,omitempty"`
	// Stage of provisioning that failed.
	Stage string `json:"stage,omitempty" yaml:"stage,omitempty"`
	// Detail is a sentence for people.
	Detail string `json:"detail,omitempty" yaml:"detail,omitempty"`
	// Flags mark what a reader should know: "timeout_scored", "agent_processes_kept".
	Flags []string `json:"flags,omitempty" yaml:"flags,omitempty"`
}

// Grade is the verdict. Without Scored it holds no number.
type Grade struct {
	Scored     bool     `json:"scored" yaml:"scored"`
	BinaryPass bool     `json:"binary_pass" yaml:"binary_pass"`
	Score      *float64 `json:"score" yaml:"score"` // nil: no score, which is not 0
	// Rewards are all numbers that the grader gave.
	Rewards map[string]float64 `json:"rewards,omitempty" yaml:"rewards,omitempty"`
	// Primary is the reward that is the score.
	Primary       string  `json:"primary,omitempty" yaml:"primary,omitempty"`
	PassThreshold float64 `json:"pass_threshold" yaml:"pass_threshold"`
	Reasons       string  `json:"reasons,omitempty" yaml:"reasons,omitempty"`
	// Steps of a multi-step task.
	Steps []StepGrade `json:"steps,omitempty" yaml:"steps,omitempty"`
}

// StepGrade is the verdict of one step.
type StepGrade struct {
	Name    string             `json:"name" yaml:"name"`
	Score   *float64           `json:"score" yaml:"score"`
	Rewards map[string]float64 `json:"rewards,omitempty" yaml:"rewards,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	PromptTokens             int64 `json:"prompt_tokens" yaml:"prompt_tokens"`
	CompletionTokens         int64 `json:"completion_tokens" yaml:"completion_tokens"`
	ReasoningTokens          int64 `json:"reasoning_tokens" yaml:"reasoning_tokens"`
	CachedTokens             int64 `json:"cached_tokens" yaml:"cached_tokens"`
	CacheCreationInputTokens int64 `json:"cache_creation_input_tokens" yaml:"cache_creation_input_tokens"`
	CacheReadInputTokens     int64 `json:"cache_read_input_tokens" yaml:"cache_read_input_tokens"`
}

// Metrics is metrics.yaml: the reference's keys, and ours. Durations are seconds on
// the monotonic clock, rounded to 3 decimals; see [Seconds].
type Metrics struct {
	SchemaVersion         int      `json:"schema_version" yaml:"schema_version"`
	LatencyTotalS         Seconds  `json:"latency_total_s" yaml:"latency_total_s"` // provision to teardown
	ProvisioningDurationS *Seconds `json:"provisioning_duration_s,omitempty" yaml:"provisioning_duration_s,omitempty"`
	SetupDurationS        *Seconds `json:"setup_duration_s,omitempty" yaml:"setup_duration_s,omitempty"`
	AgentSpanDurationS    *Seconds `json:"agent_span_duration_s,omitempty" yaml:"agent_span_duration_s,omitempty"`
	GradingDurationS      *Seconds `json:"grading_duration_s,omitempty" yaml:"grading_duration_s,omitempty"`
	TeardownDurationS     *Seconds `json:"teardown_duration_s,omitempty" yaml:"teardown_duration_s,omitempty"`
	Turns                 int64    `json:"turns" yaml:"turns"`
	APICalls              int64    `json:"api_calls" yaml:"api_calls"`
	ToolCalls             int64    `json:"tool_calls" yaml:"tool_calls"`
	ToolSuccessRate       *float64 `json:"tool_success_rate,omitempty" yaml:"tool_success_rate,omitempty"`
	StuckDetected         bool     `json:"stuck_detected" yaml:"stuck_detected"`
	Usage                 Usage    `json:"usage" yaml:"usage"`
	CostUSD               *float64 `json:"cost_usd" yaml:"cost_usd"` // nil: never priced
	Error                 string   `json:"error,omitempty" yaml:"error,omitempty"`
	ErrorReason           string   `json:"error_reason,omitempty" yaml:"error_reason,omitempty"`
	ErrorStage            string   `json:"error_stage,omitempty" yaml:"error_stage,omitempty"`
	AgentExitCode         *int     `json:"agent_exit_code,omitempty" yaml:"agent_exit_code,omitempty"`
	AgentSignal           string   `json:"agent_signal,omitempty" yaml:"agent_signal,omitempty"`
	AgentOutputBytes      int64    `json:"agent_output_bytes,omitempty" yaml:"agent_output_bytes,omitempty"`
	// CapturedServiceLogs is bytes by service.
	CapturedServiceLogs map[string]int64 `json:"captured_service_logs,omitempty" yaml:"captured_service_logs,omitempty"`
}
