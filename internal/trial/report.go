// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidemill/tidemill/bundle"
)

// Files that an agent may leave in its log directory. None is required.
const (
	statusFile     = "status.json"
	usageFile      = "usage.json"
	trajectoryATIF = "trajectory.json"
	trajectoryLog  = "trajectory.jsonl"
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

// agentUsage is usage.json.
type agentUsage struct {
	bundle.Usage
	Turns           int64    `json:"turns"`
	APICalls        int64    `json:"api_calls"`
	ToolCalls       int64    `json:"tool_calls"`
	ToolSuccessRate *float64 `json:"tool_success_rate"`
	StuckDetected   bool     `json:"stuck_detected"`
	CostUSD         *float64 `json:"cost_usd"`
}

// parseUsage reads usage.json. Negative numbers are refused: they would make sums lie.
func parseUsage(data []byte) (agentUsage, error) {
	var u agentUsage
	if err := json.Unmarshal(data, &u); err != nil {
		return agentUsage{}, fmt.Errorf("%s: %w", usageFile, err)
	}
	for _, n := range []int64{
		u.PromptTokens, u.CompletionTokens, u.ReasoningTokens, u.CachedTokens,
		u.CacheCreationInputTokens, u.CacheReadInputTokens, u.Turns, u.APICalls, u.ToolCalls,
	} {
		if n < 0 {
			return agentUsage{}, fmt.Errorf("%s: negative numbers can't be", usageFile)
		}
	}
	if u.CostUSD != nil && *u.CostUSD < 0 {
		return agentUsage{}, fmt.Errorf("%s: cost_usd is negative", usageFile)
	}
	return u, nil
}

func (u agentUsage) into(m *bundle.Metrics) {
	m.Usage = u.Usage
	m.Turns, m.APICalls, m.ToolCalls = u.Turns, u.APICalls, u.ToolCalls
	m.ToolSuccessRate, m.StuckDetected, m.CostUSD = u.ToolSuccessRate, u.StuckDetected, u.CostUSD
}
