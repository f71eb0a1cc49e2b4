// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
)

// What an agent says of itself, in a bundle.
func TestReports(t *testing.T) {
	const atif = `write agent/trajectory.json {"schema_version":"ATIF-v1.4","steps":[` +
		`{"source":"user","message":"Say hello."},` +
		`{"source":"agent","message":"I do.","tool_calls":[{"tool_call_id":"1","function_name":"sh","arguments":{"cmd":"echo"}}],` +
		`"observation":{"results":[{"source_call_id":"1","content":"ok"}]},"metrics":{"prompt_tokens":7,"completion_tokens":3,"cost_usd":0.125}}]}`
	price := func(f float64) *float64 { return &f }
	for name, c := range map[string]struct {
		agent []string
		want  bundle.Metrics // usage, turns, calls, cost
		flags []string
		says  string // in trajectory.yaml
		kept  string
	}{
		"nothing": {says: "messages: []"},
		"trajectory": {
			agent: argv(atif), says: "content: I do.", kept: "logs/agent/trajectory.json",
			want: bundle.Metrics{Turns: 1, APICalls: 1, ToolCalls: 1, CostUSD: price(0.125), Usage: bundle.Usage{PromptTokens: 7, CompletionTokens: 3}},
		},
		"trajectory and usage: what usage has goes first": {
			agent: argv(atif, `write agent/usage.json {"prompt_tokens":100,"turns":9}`), says: "content: I do.",
			want: bundle.Metrics{Turns: 9, APICalls: 1, ToolCalls: 1, CostUSD: price(0.125), Usage: bundle.Usage{PromptTokens: 100, CompletionTokens: 3}},
		},
		"usage without a price": {
			agent: argv(`write agent/usage.json {"completion_tokens":5}`),
			want:  bundle.Metrics{Usage: bundle.Usage{CompletionTokens: 5}},
		},
		"free": {agent: argv(`write agent/usage.json {"cost_usd":0}`), want: bundle.Metrics{CostUSD: price(0)}},
		"unreadable usage": {
			agent: argv(atif, "write agent/usage.json {"), says: "content: I do.", kept: "logs/agent/usage.json", flags: []string{"unreadable_usage.json"},
			want: bundle.Metrics{Turns: 1, APICalls: 1, ToolCalls: 1, CostUSD: price(0.125), Usage: bundle.Usage{PromptTokens: 7, CompletionTokens: 3}},
		},
		"impossible usage": {agent: argv(`write agent/usage.json {"cost_usd":-1}`), kept: "logs/agent/usage.json", flags: []string{"unreadable_usage.json"}},
		"unreadable status": {
			agent: argv(`write agent/status.json {"termination_reason":"bored"}`), kept: "logs/agent/status.json", flags: []string{"unreadable_status.json"},
		},
		"status is a symlink": {agent: argv("symlink /etc/passwd agent/status.json"), flags: []string{"unreadable_status.json"}},
		"huge status": {
			agent: argv("big-file agent/status.json 70000"), kept: "logs/agent/status.json", flags: []string{"unreadable_status.json"},
		},
		"unreadable trajectory, readable lines": {
			agent: argv("write agent/trajectory.json []", `write agent/trajectory.jsonl {"role":"assistant","content":"line"}`),
			says:  "content: line", flags: []string{"unreadable_trajectory.json"},
		},
		"lines with one that is wrong": {
			agent: argv(`write agent/trajectory.jsonl "{\"role\":\"assistant\",\"content\":\"line\"}\nnothing\n"`),
			says:  "content: line", flags: []string{"unreadable_trajectory.jsonl"},
		},
		"cut off": {
			agent: argv(`write agent/trajectory.jsonl "{\"role\":\"assistant\",\"content\":\"line\"}\n{\"role\":\"assi"`), says: "content: line",
		},
		"status in full": {agent: argv(`write agent/status.json {"termination_reason":"stuck_detected"}`), says: "termination_reason: stuck_detected"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.agent(append(c.agent, "write out.txt hello")...)
			got := j.run(t, t.Context())
			if got.Ending != trial.Graded || !got.Grade.BinaryPass {
				t.Errorf("%+v", got.Outcome)
			}
			equal(t, "flags", c.flags, got.Outcome.Flags)
			m := got.Metrics
			equal(t, "metrics", c.want, bundle.Metrics{Usage: m.Usage, Turns: m.Turns, APICalls: m.APICalls, ToolCalls: m.ToolCalls, CostUSD: m.CostUSD})
			if !strings.Contains(got.files["trajectory.yaml"], c.says) {
				t.Errorf("trajectory.yaml has no %q:\n%s", c.says, got.files["trajectory.yaml"])
			}
			if _, ok := got.files[c.kept]; c.kept != "" && !ok {
				t.Errorf("%s was not kept", c.kept)
			}
			if c.flags == nil {
				for _, name := range []string{"logs/agent/status.json", "logs/agent/usage.json"} {
					if _, ok := got.files[name]; ok {
						t.Errorf("%s is there twice", name)
					}
				}
			}
		})
	}
}

// An ordinary trial is a handful of objects.
func TestFewObjects(t *testing.T) {
	got := newJob(t).run(t, t.Context())
	if len(got.files) != 7 {
		t.Errorf("%d files, want 7 and the index", len(got.files))
	}
}

// Details come from programs: they are bounded and valid.
func TestLongDetail(t *testing.T) {
	j := newJob(t)
	j.agent(`write agent/status.json {"termination_reason":"error","detail":"`+strings.Repeat("ü", 10_000)+`"}`, "write out.txt hello")
	got := j.run(t, t.Context())
	if d := got.Outcome.Detail; len(d) > 2100 || !strings.HasSuffix(d, "ü… (18000 bytes left out)") {
		t.Errorf("%d bytes: …%s", len(d), d[max(0, len(d)-60):])
	}
}

// A log has its limit.
func TestLogLimit(t *testing.T) {
	j := newJob(t)
	j.Run.Run.Capture.MaxLogBytes = 100
	j.agent("write out.txt hello", "flood 4")
	got := j.run(t, t.Context())
	if log := got.files["logs/agent.log"]; !strings.Contains(log, "log full at 100 bytes") || len(log) > 300 {
		t.Errorf("%d bytes: %.300s", len(log), log)
	}
	equal(t, "bytes", int64(8192), got.Metrics.AgentOutputBytes)
}
