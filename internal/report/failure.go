// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/tidemill/tidemill/bundle"
)

// Failure is a trial that did not pass, as failure_attribution.json has it.
type Failure struct {
	TaskID            string     `json:"task_id"`
	TrialIndex        int        `json:"trial_index"`
	Status            string     `json:"status"`
	TerminationReason *string    `json:"termination_reason"`
	FailureClass      string     `json:"failure_class"`
	Deterministic     bool       `json:"deterministic"`
	Confidence        float64    `json:"confidence"`
	Evidence          []Evidence `json:"evidence"`
}

// Evidence tells what an attribution rests on; Kind says which of the keys count.
type Evidence struct {
	Kind string `json:"kind"` // outcome or files
	// Of an outcome.
	Value        string   `json:"value,omitempty"` // termination reason
	Status       string   `json:"status,omitempty"`
	FailureClass string   `json:"failure_class,omitempty"` // ours, not the reference's
	Phase        string   `json:"phase,omitempty"`
	Stage        string   `json:"stage,omitempty"`
	Detail       string   `json:"detail,omitempty"`
	Flags        []string `json:"flags,omitempty"`
	// Of files.
	Attempt int    `json:"attempt,omitempty"`
	Path    string `json:"path,omitempty"` // relative to the store
}

// Failures is failure_attribution.json.
type Failures struct {
	Summary  FailureSummary `json:"summary"`
	Failures []Failure      `json:"failures"`
	// Sidecar has all failures when Failures has not.
	Sidecar *string `json:"sidecar,omitempty"`
}

// FailureSummary counts them.
type FailureSummary struct {
	Total int64 `json:"total_failed_attempts"`
	// Coverage is the share of deterministic ones, nil without failures.
	Coverage *float64         `json:"deterministic_attribution_coverage"`
	ByClass  map[string]int64 `json:"by_failure_class"`
	// ByTool stays empty: commits have no record of single tool calls.
	ByTool map[string]int64 `json:"by_tool"`
}

// The reference's classes, as far as an outcome can tell them, and one of ours.
const (
	classGrader    = "grader_contract"
	classInfra     = "infrastructure"
	classLimit     = "timeout_or_resource"
	classProvision = "provision_failure"
	classModel     = "model_reasoning"
	classSetup     = "task_setup" // ours: the task's own setup failed
)

// attribute names the class of a failure, and whether the records prove it. What is
// left when nothing else explains a failed grade is the agent's reasoning.
func attribute(o bundle.Outcome) (class string, deterministic bool) {
	switch {
	case o.TerminationReason == bundle.ReasonProvisionError:
		return classProvision, true
	case o.FailureClass == bundle.GraderFailure:
		return classGrader, true
	case o.FailureClass == bundle.TaskFailure:
		return classSetup, true
	case o.FailureClass == bundle.ProviderFailure, o.FailureClass == bundle.LimitFailure,
		o.Status == bundle.TimedOut, o.TerminationReason == bundle.ReasonResourceExhausted:
		return classLimit, true
	case o.FailureClass == bundle.InfraFailure:
		return classInfra, true
	default:
		return classModel, false
	}
}

// failures collects them.
type failures struct {
	list          *list[Failure]
	byClass       tally
	deterministic int64
}

func newFailures(spool Spool) *failures {
	return &failures{list: newList[Failure](spool, FailuresSidecar), byClass: tally{}}
}

func (f *failures) add(keys bundle.Keys, c *bundle.Commit) error {
	if passed(c) {
		return nil
	}
	class, sure := attribute(c.Outcome)
	f.byClass.add(class)
	confidence := 0.5
	if sure {
		confidence = 1
		f.deterministic++
	}
	o := c.Outcome
	err := f.list.add(Failure{
		TaskID:            c.TaskID,
		TrialIndex:        c.TrialIndex,
		Status:            string(o.Status),
		TerminationReason: textOrNil(o.TerminationReason),
		FailureClass:      class,
		Deterministic:     sure,
		Confidence:        confidence,
		Evidence: []Evidence{
			{
				Kind: "outcome", Value: o.TerminationReason, Status: string(o.Status), FailureClass: string(o.FailureClass),
				Phase: o.Phase, Stage: o.Stage, Detail: o.Detail, Flags: o.Flags,
			},
			{Kind: "files", Attempt: c.Attempt, Path: keys.AttemptFiles(c.TaskID, c.TrialIndex, c.Attempt)},
		},
	})
	if err != nil {
		return fmt.Errorf("list failures: %w", err)
	}
	return nil
}

func (f *failures) result() Failures {
	s := FailureSummary{Total: f.list.count, ByClass: f.byClass, ByTool: map[string]int64{}}
	if s.Total > 0 {
		share := float64(f.deterministic) / float64(s.Total)
		s.Coverage = &share
	}
	return Failures{Summary: s, Failures: f.list.inline, Sidecar: f.list.sidecar()}
}
