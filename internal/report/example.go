// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"strconv"

	"github.com/tidemill/tidemill/bundle"
)

// Example is one of several trials that ended alike: the first of them by task id and
// index.
type Example struct {
	TaskID     string `json:"task_id"`
	TrialIndex int    `json:"trial_index"`
	Attempt    int    `json:"attempt"` // whose log it is
	Detail     string `json:"detail"`
	// Log is where to look, relative to the store: a log, or the attempt's directory
	// where no log tells.
	Log string `json:"log"`
}

func exampleOf(keys bundle.Keys, c *bundle.Commit, detail, log string) *Example {
	attempt := c.Attempt
	if log == agentLog && c.Regraded != nil { // what was only graded again has no agent
		attempt = c.Regraded.Attempt
	}
	return &Example{
		TaskID: c.TaskID, TrialIndex: c.TrialIndex, Attempt: attempt, Detail: detail,
		Log: keys.AttemptFiles(c.TaskID, c.TrialIndex, attempt) + log,
	}
}

// Logs of an attempt.
const (
	agentLog  = "logs/agent.log" // of setup, too
	graderLog = "logs/grader.log"
)

// logOf names the log that tells why a trial has no score; "" where none does.
func logOf(o bundle.Outcome) string {
	switch o.FailureClass {
	case bundle.GraderFailure:
		return graderLog
	case bundle.AgentFailure, bundle.ProviderFailure, bundle.TaskFailure:
		return agentLog
	default:
		return ""
	}
}

// badExit says how an agent ended that did not end well by its own account: a broken
// agent's trials are scored like a bad one's. One that we stopped for being out of time
// is none.
func badExit(c *bundle.Commit) (how string, bad bool) {
	code := c.Metrics.AgentExitCode
	switch {
	case c.Outcome.Status == bundle.TimedOut:
		return "", false
	case c.Metrics.AgentSignal != "":
		return "signal " + c.Metrics.AgentSignal, true
	case code != nil && *code != 0:
		return "exit code " + strconv.Itoa(*code), true
	default:
		return "", false
	}
}

// after reports whether a commit is the better example. Nil is after any.
func (e *Example) after(c *bundle.Commit) bool {
	return e == nil || cmp.Or(cmp.Compare(c.TaskID, e.TaskID), cmp.Compare(c.TrialIndex, e.TrialIndex)) < 0
}

// examples remembers a trial of each reason.
type examples map[string]*Example

func (e examples) add(reason string, keys bundle.Keys, c *bundle.Commit) {
	if e[reason].after(c) {
		e[reason] = exampleOf(keys, c, c.Outcome.Detail, logOf(c.Outcome))
	}
}
