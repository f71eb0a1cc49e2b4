// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tidemill/tidemill/bundle"
)

// message is one entry of trajectory.yaml's messages.
type message struct {
	Role       string     `yaml:"role" json:"role"`
	Content    string     `yaml:"content" json:"content"`
	Reasoning  string     `yaml:"reasoning,omitempty" json:"reasoning,omitempty"`
	ToolCalls  []toolCall `yaml:"tool_calls,omitempty" json:"tool_calls,omitempty"`
	ToolCallID string     `yaml:"tool_call_id,omitempty" json:"tool_call_id,omitempty"`
	TS         string     `yaml:"ts,omitempty" json:"ts,omitempty"`
}

type toolCall struct {
	ID        string         `yaml:"id" json:"id"`
	Name      string         `yaml:"name" json:"name"`
	Arguments map[string]any `yaml:"arguments" json:"arguments"`
}

// atif is the part of an ATIF trajectory that we translate.
type atif struct {
	SchemaVersion string     `json:"schema_version"`
	Steps         []atifStep `json:"steps"`
	FinalMetrics  *struct {
		PromptTokens     int64    `json:"total_prompt_tokens"`
		CompletionTokens int64    `json:"total_completion_tokens"`
		CachedTokens     int64    `json:"total_cached_tokens"`
		CostUSD          *float64 `json:"total_cost_usd"`
	} `json:"final_metrics"`
}

type atifStep struct {
	Timestamp        string          `json:"timestamp"`
	Source           string          `json:"source"` // user, agent, system
	Message          json.RawMessage `json:"message"`
	ReasoningContent string          `json:"reasoning_content"`
	ToolCalls        []struct {
		ID        string         `json:"tool_call_id"`
		Function  string         `json:"function_name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"tool_calls"`
	Observation *struct {
		Results []struct {
			SourceCallID string          `json:"source_call_id"`
			Content      json.RawMessage `json:"content"`
		} `json:"results"`
	} `json:"observation"`
	Metrics *struct {
		PromptTokens     int64    `json:"prompt_tokens"`
		CompletionTokens int64    `json:"completion_tokens"`
		CachedTokens     int64    `json:"cached_tokens"`
		CostUSD          *float64 `json:"cost_usd"`
	} `json:"metrics"`
}

// parseATIF translates trajectory.json. The usage comes from final_metrics, else from
// the sum of the steps; nil when neither is there.
func parseATIF(data []byte) ([]message, *agentUsage, error) {
	var t atif
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", trajectoryATIF, err)
	}
	if t.SchemaVersion == "" || t.Steps == nil {
		return nil, nil, fmt.Errorf("%s: want ATIF: an object with schema_version and steps", trajectoryATIF)
	}
	var messages []message
	var use agentUsage
	counted := false
	for _, s := range t.Steps {
		m := message{Role: atifRole(s.Source), Content: text(s.Message), Reasoning: s.ReasoningContent, TS: s.Timestamp}
		for _, c := range s.ToolCalls {
			m.ToolCalls = append(m.ToolCalls, toolCall{ID: c.ID, Name: c.Function, Arguments: c.Arguments})
		}
		use.ToolCalls += int64(len(s.ToolCalls))
		if m.Role == "assistant" {
			use.Turns++
		}
		messages = append(messages, m)
		if s.Observation != nil {
			for _, r := range s.Observation.Results {
				messages = append(messages, message{Role: "tool", Content: text(r.Content), ToolCallID: r.SourceCallID, TS: s.Timestamp})
			}
		}
		if s.Metrics != nil {
			counted = true
			use.APICalls++
			use.PromptTokens += s.Metrics.PromptTokens
			use.CompletionTokens += s.Metrics.CompletionTokens
			use.CachedTokens += s.Metrics.CachedTokens
			if s.Metrics.CostUSD != nil {
				sum := *s.Metrics.CostUSD
				if use.CostUSD != nil {
					sum += *use.CostUSD
				}
				use.CostUSD = &sum
			}
		}
	}
	if f := t.FinalMetrics; f != nil {
		counted = true
		use.PromptTokens, use.CompletionTokens, use.CachedTokens = f.PromptTokens, f.CompletionTokens, f.CachedTokens
		if f.CostUSD != nil {
			use.CostUSD = f.CostUSD
		}
	}
	if !counted && use.Turns == 0 {
		return messages, nil, nil
	}
	return messages, &use, nil
}

func atifRole(source string) string {
	switch source {
	case "agent":
		return "assistant"
	case "user", "system":
		return source
	default:
		return "user"
	}
}

// text returns a JSON string's text, and any other JSON as it stands: newer versions of
// the format allow content parts.
func text(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return string(raw)
	}
	return compact.String()
}

// parseMessages reads trajectory.jsonl: one message a line, in the shape of
// trajectory.yaml. A line that is cut off at the end is left out.
func parseMessages(data []byte) ([]message, error) {
	var messages []message
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, maxTrajectory)
	for line := 1; sc.Scan(); line++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		var m message
		if err := json.Unmarshal(sc.Bytes(), &m); err != nil {
			return messages, fmt.Errorf("%s:%d: %w", trajectoryLog, line, err)
		}
		messages = append(messages, m)
	}
	return messages, sc.Err()
}

// trajectory is trajectory.yaml.
type trajectory struct {
	TaskID                 string        `yaml:"task_id"`
	TrialIndex             int           `yaml:"trial_index"`
	TrialID                string        `yaml:"trial_id"`
	StartTS                string        `yaml:"start_ts"`
	EndTS                  string        `yaml:"end_ts"`
	Status                 bundle.Status `yaml:"status"`
	TerminationReason      string        `yaml:"termination_reason"`
	ProvisionStage         string        `yaml:"provision_stage,omitempty"`
	Messages               []message     `yaml:"messages"`
	SimulatorSchemaVersion int           `yaml:"simulator_schema_version"`
}
