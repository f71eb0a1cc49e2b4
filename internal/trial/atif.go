// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// atif is the part of an ATIF trajectory that we translate.
type atif struct {
	SchemaVersion string     `json:"schema_version"`
	Steps         []atifStep `json:"steps"`
	// FinalMetrics are totals; what they don't name is summed up over the steps.
	FinalMetrics *struct {
		PromptTokens     *int64   `json:"total_prompt_tokens"`
		CompletionTokens *int64   `json:"total_completion_tokens"`
		CachedTokens     *int64   `json:"total_cached_tokens"`
		CostUSD          *float64 `json:"total_cost_usd"`
	} `json:"final_metrics"`
}

type atifStep struct {
	Timestamp        prose           `json:"timestamp"`
	Source           string          `json:"source"` // user, agent, system
	Message          json.RawMessage `json:"message"`
	ReasoningContent prose           `json:"reasoning_content"`
	ToolCalls        []struct {
		ID        prose `json:"tool_call_id"`
		Function  prose `json:"function_name"`
		Arguments any   `json:"arguments"`
	} `json:"tool_calls"`
	Observation *struct {
		Results []struct {
			SourceCallID prose           `json:"source_call_id"`
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
// the sum of the steps; nil when neither is there. Messages may come with an error:
// then the usage can't be.
func parseATIF(data []byte) ([]message, *agentUsage, error) {
	var t atif
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", trajectoryATIF, err)
	}
	if t.SchemaVersion == "" || t.Steps == nil {
		return nil, nil, fmt.Errorf("%s: want ATIF: an object with schema_version and steps", trajectoryATIF)
	}
	var messages []message
	for _, s := range t.Steps {
		messages = append(messages, s.messages()...)
	}
	use, err := t.usage()
	if err != nil {
		return messages, nil, fmt.Errorf("%s: %w", trajectoryATIF, err)
	}
	return messages, use, nil
}

func (s atifStep) messages() []message {
	m := message{Role: atifRole(s.Source), Content: text(s.Message), Reasoning: s.ReasoningContent, TS: s.Timestamp}
	for _, c := range s.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, toolCall{ID: c.ID, Name: c.Function, Arguments: c.Arguments})
	}
	out := []message{m}
	if s.Observation != nil {
		for _, r := range s.Observation.Results {
			out = append(out, message{Role: "tool", Content: text(r.Content), ToolCallID: r.SourceCallID, TS: s.Timestamp})
		}
	}
	return out
}

func (t atif) usage() (*agentUsage, error) {
	var sum agentUsage
	known := false
	for _, s := range t.Steps {
		sum.ToolCalls += int64(len(s.ToolCalls))
		if atifRole(s.Source) == "assistant" {
			known = true
			sum.Turns++
		}
		if s.Metrics == nil {
			continue
		}
		known = true
		one := agentUsage{CostUSD: s.Metrics.CostUSD}
		one.PromptTokens, one.CompletionTokens = s.Metrics.PromptTokens, s.Metrics.CompletionTokens
		one.CachedTokens = s.Metrics.CachedTokens
		if err := one.check(); err != nil { // else the sum could overflow
			return nil, err
		}
		sum.APICalls++
		sum.PromptTokens += one.PromptTokens
		sum.CompletionTokens += one.CompletionTokens
		sum.CachedTokens += one.CachedTokens
		sum.CostUSD = addCost(sum.CostUSD, one.CostUSD)
	}
	if f := t.FinalMetrics; f != nil {
		known = true
		for into, total := range map[*int64]*int64{
			&sum.PromptTokens: f.PromptTokens, &sum.CompletionTokens: f.CompletionTokens, &sum.CachedTokens: f.CachedTokens,
		} {
			if total != nil {
				*into = *total
			}
		}
		if f.CostUSD != nil {
			sum.CostUSD = f.CostUSD
		}
	}
	if !known {
		return nil, nil
	}
	return &sum, sum.check()
}

func atifRole(source string) prose {
	switch source {
	case "agent":
		return "assistant"
	case "user", "system":
		return prose(source)
	default:
		return "user"
	}
}

// text returns a JSON string's text, and any other JSON as it stands: newer versions of
// the format allow content parts.
func text(raw json.RawMessage) prose {
	var s prose
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return prose(raw)
	}
	return prose(compact.String())
}
