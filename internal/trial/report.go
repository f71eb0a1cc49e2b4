// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/runtime"
)

// Files that an agent may leave in its log directory. None is required.
const (
	statusFile     = "status.json"
	usageFile      = "usage.json"
	trajectoryATIF = "trajectory.json"
	trajectoryLog  = "trajectory.jsonl"
)

// Limits of what is read of them, in bytes. Larger trajectories are kept as they are
// and not translated.
const (
	maxReport     = 64 << 10
	maxTrajectory = 16 << 20
)

// agentStatus is status.json.
type agentStatus struct {
	TerminationReason string `json:"termination_reason"`
	Detail            string `json:"detail"`
}

// providerReasons mean that the model provider failed the agent.
var providerReasons = []string{bundle.ReasonRateLimit, bundle.ReasonAPITimeout, bundle.ReasonAPIError}

// agentReasons are the other words that an agent may give.
var agentReasons = []string{
	bundle.ReasonAgentDone, "agent_submitted", "user_stop", "stuck_detected", "max_turns", "error",
	"user_tool_loop_limit", "empty_completion", "reasoning_without_action", "context_window_exceeded",
	bundle.ReasonTimeout,
}

// parseStatus returns the agent's own word. An unreadable file or an unknown word is
// an error, for a flag; it never decides anything.
func parseStatus(data []byte) (agentStatus, error) {
	var s agentStatus
	if err := json.Unmarshal(data, &s); err != nil {
		return agentStatus{}, fmt.Errorf("%s: %w", statusFile, err)
	}
	if s.TerminationReason != "" && !slices.Contains(providerReasons, s.TerminationReason) &&
		!slices.Contains(agentReasons, s.TerminationReason) {
		return agentStatus{}, fmt.Errorf("%s: unknown termination_reason %s", statusFile, quote(s.TerminationReason))
	}
	return s, nil
}

// readReports reads what the agent says of itself in this step, before the sandbox
// goes. What usage.json has goes before what the trajectory says.
func (a *attempt) readReports(ctx context.Context) {
	var usage *agentUsage
	var messages []message
	a.readReport(ctx, trajectoryATIF, maxTrajectory, func(data []byte) (err error) {
		messages, usage, err = parseATIF(data)
		return err
	})
	if messages == nil {
		a.readReport(ctx, trajectoryLog, maxTrajectory, func(data []byte) (err error) {
			messages, err = parseMessages(data)
			return err
		})
	}
	read := a.readReport(ctx, usageFile, maxReport, func(data []byte) (err error) {
		usage, err = parseUsage(data, usage)
		return err
	})
	a.used["agent/"+usageFile] = read
	for _, m := range messages {
		a.messages = append(a.messages, m.redacted(a.redact))
	}
	if usage != nil {
		a.addUsage(usage)
	}
}

// readReport reports whether the file is there and can be used.
func (a *attempt) readReport(ctx context.Context, name string, limit int64, use func([]byte) error) bool {
	data, err := a.readFile(ctx, runtime.AgentLogs, name, limit)
	if errors.Is(err, runtime.ErrNotExist) || errors.Is(err, runtime.ErrLost) {
		return false // the loss is for collection to tell
	}
	if err == nil {
		err = use(data)
	}
	if err != nil {
		a.unreadable(name, err)
	}
	return err == nil
}

// unreadable notes a report of the agent's that can't be used. The file stays in the
// bundle as it is.
func (a *attempt) unreadable(name string, err error) {
	a.Log.Debug().Err(err).Str("file", name).Msg("agent's report is not usable")
	a.flag(FlagUnreadable + name)
}
