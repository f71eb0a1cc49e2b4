// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"slices"

	"github.com/tidemill/tidemill/bundle"
)

// Ending is what happened to an attempt, as seen by the code that ran it.
type Ending string

// The endings. Each is a row of [Table].
const (
	Graded          Ending = "graded"           // agent done, grader gave a verdict
	AgentTimedOut   Ending = "agent_timed_out"  // agent out of time, grader gave a verdict
	Exhausted       Ending = "exhausted"        // agent used up its own memory, pids or disk
	SetupFailed     Ending = "setup_failed"     // agent can't be started, or setup failed
	ProviderFailed  Ending = "provider_failed"  // the model provider failed the agent
	GraderFailed    Ending = "grader_failed"    // no verdict, or not a usable one
	ProvisionFailed Ending = "provision_failed" // the sandbox did not come up
	SandboxLost     Ending = "sandbox_lost"     // the sandbox died under us
	InfraFailed     Ending = "infra_failed"     // engine, store or queue trouble
	Poisoned        Ending = "poisoned"         // killed its worker again and again
	RunCancelled    Ending = "run_cancelled"
	PastDeadline    Ending = "past_deadline"
	OverBudget      Ending = "over_budget"
)

// RetryRule says whether an ending is tried again.
type RetryRule int

// The rules.
const (
	NoRetry RetryRule = iota
	RetryIfAsked
	Retry
	OnResume // no commit; the trial runs when the run is resumed
)

// Row is a line of the outcome table.
type Row struct {
	Status bundle.Status
	Reason string
	Class  bundle.FailureClass
	Scored bool
	Flag   string
	Retry  RetryRule
	// Commit: without it the trial stays open.
	Commit bool
}

// Table is the outcome table of docs/trial-lifecycle.md. It is the only place where
// an ending becomes status, reason and class.
var Table = map[Ending]Row{
	Graded:          {bundle.Completed, bundle.ReasonAgentDone, bundle.NoFailure, true, "", NoRetry, true},
	AgentTimedOut:   {bundle.TimedOut, bundle.ReasonTimeout, bundle.AgentFailure, true, "timeout_scored", NoRetry, true},
	Exhausted:       {bundle.Completed, bundle.ReasonResourceExhausted, bundle.AgentFailure, true, "", NoRetry, true},
	SetupFailed:     {bundle.Errored, bundle.ReasonSetupError, bundle.TaskFailure, false, "", RetryIfAsked, true},
	ProviderFailed:  {bundle.Errored, bundle.ReasonAPIError, bundle.ProviderFailure, false, "", Retry, true},
	GraderFailed:    {bundle.Errored, bundle.ReasonGraderError, bundle.GraderFailure, false, "", RetryIfAsked, true},
	ProvisionFailed: {bundle.Errored, bundle.ReasonProvisionError, bundle.InfraFailure, false, "", Retry, true},
	SandboxLost:     {bundle.Errored, bundle.ReasonRuntimeLost, bundle.InfraFailure, false, "", Retry, true},
	InfraFailed:     {bundle.Errored, bundle.ReasonInfraError, bundle.InfraFailure, false, "", Retry, true},
	Poisoned:        {bundle.Errored, bundle.ReasonPoison, bundle.InfraFailure, false, "", NoRetry, true},
	RunCancelled:    {bundle.Cancelled, bundle.ReasonCancelled, bundle.LimitFailure, false, "", OnResume, false},
	PastDeadline:    {bundle.Cancelled, bundle.ReasonDeadline, bundle.LimitFailure, false, "", OnResume, false},
	OverBudget:      {bundle.Cancelled, bundle.ReasonBudget, bundle.LimitFailure, false, "", OnResume, false},
}

// Outcome turns an ending into the outcome of its row. A reason that the agent gave
// takes the row's place where one is given.
func (e Ending) Outcome(reason, phase, detail string) bundle.Outcome {
	row := Table[e]
	o := bundle.Outcome{
		Status: row.Status, TerminationReason: row.Reason, FailureClass: row.Class,
		Scored: row.Scored, Phase: phase, Detail: detail,
	}
	if reason != "" {
		o.TerminationReason = reason
	}
	if row.Flag != "" {
		o.Flags = []string{row.Flag}
	}
	return o
}

// ShouldRetry applies the row's rule. asked are the failure classes of retry.on; when
// it is empty the default applies: infra and provider. permanent failures are never
// tried again.
func (e Ending) ShouldRetry(asked []string, permanent bool) bool {
	row := Table[e]
	if permanent {
		return false
	}
	switch row.Retry {
	case Retry:
		return len(asked) == 0 || slices.Contains(asked, string(row.Class))
	case RetryIfAsked:
		return slices.Contains(asked, string(row.Class))
	default:
		return false
	}
}
