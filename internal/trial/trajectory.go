// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/redact"
)

// message is one entry of trajectory.yaml's messages.
type message struct {
	Role       prose      `yaml:"role" json:"role"`
	Content    prose      `yaml:"content" json:"content"`
	Reasoning  prose      `yaml:"reasoning,omitempty" json:"reasoning,omitempty"`
	ToolCalls  []toolCall `yaml:"tool_calls,omitempty" json:"tool_calls,omitempty"`
	ToolCallID prose      `yaml:"tool_call_id,omitempty" json:"tool_call_id,omitempty"`
	TS         prose      `yaml:"ts,omitempty" json:"ts,omitempty"`
}

type toolCall struct {
	ID        prose `yaml:"id" json:"id"`
	Name      prose `yaml:"name" json:"name"`
	Arguments any   `yaml:"arguments" json:"arguments"`
}

// MarshalYAML makes texts below the arguments prose too.
func (c toolCall) MarshalYAML() (any, error) {
	type plain toolCall
	c.Arguments = proseIn(c.Arguments)
	return plain(c), nil
}

// redacted returns the message without secrets, names of tools and ids included.
func (m message) redacted(r *redact.Redactor) message {
	if r.Empty() {
		return m
	}
	clean := func(p prose) prose { return prose(r.String(string(p))) }
	for _, p := range []*prose{&m.Role, &m.Content, &m.Reasoning, &m.ToolCallID, &m.TS} {
		*p = clean(*p)
	}
	calls := m.ToolCalls
	m.ToolCalls = nil
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls, toolCall{ID: clean(c.ID), Name: clean(c.Name), Arguments: r.Any(c.Arguments)})
	}
	return m
}

// parseMessages reads trajectory.jsonl: one message a line, in the shape of
// trajectory.yaml. A last line that was cut off is left out. Messages before a line
// that is wrong are returned with the error.
func parseMessages(data []byte) ([]message, error) {
	var messages []message
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var m message
		err := json.Unmarshal(line, &m)
		if err != nil && line[len(line)-1] != '\n' {
			break // the agent was ended while it wrote
		}
		if err == nil && m.Role == "" {
			err = errors.New("want an object with a role")
		}
		if err != nil {
			return messages, fmt.Errorf("%s:%d: %w", trajectoryLog, number, err)
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// trajectory is trajectory.yaml.
type trajectory struct {
	TaskID            prose         `yaml:"task_id"`
	TrialIndex        int           `yaml:"trial_index"`
	TrialID           string        `yaml:"trial_id"`
	StartTS           string        `yaml:"start_ts"`
	EndTS             string        `yaml:"end_ts"`
	Status            bundle.Status `yaml:"status"`
	TerminationReason string        `yaml:"termination_reason"`
	ProvisionStage    string        `yaml:"provision_stage,omitempty"`
	// AgentEnd is there where the status tells of something that came after the agent.
	AgentEnd               *agentWas `yaml:"agent_end,omitempty"`
	Messages               []message `yaml:"messages"`
	SimulatorSchemaVersion int       `yaml:"simulator_schema_version"`
}
