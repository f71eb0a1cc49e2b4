// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/tidemill/tidemill/bundle"
)

func TestParseStatus(t *testing.T) {
	for text, want := range map[string]string{
		`{"termination_reason":"max_turns"}`:    "max_turns",
		`{"termination_reason":"rate_limit"}`:   "rate_limit",
		`{}`:                                    "",
		`{"termination_reason":null,"more":[]}`: "",
		`{"termination_reason":"done"}`:         `error status.json: unknown termination_reason "done"`,
		`{"termination_reason":1}`:              "error status.json: json: cannot unmarshal",
		``:                                      "error status.json: unexpected end",
		`[]`:                                    "error status.json: json: cannot unmarshal",
	} {
		s, err := parseStatus([]byte(text))
		got := s.TerminationReason
		if err != nil {
			got = "error " + err.Error()
		}
		if got != want && (err == nil || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestParseUsage(t *testing.T) {
	known := &agentUsage{Turns: 4, CostUSD: new(0.5), ToolSuccessRate: new(1.0)}
	for text, want := range map[string]string{
		`{"prompt_tokens":1,"cost_usd":0.25,"tool_success_rate":0.5}`: "",
		`{"prompt_tokens":1000000000000,"cost_usd":1000000}`:          "",
		`{"prompt_tokens":-1}`:          "usage.json: -1 tokens",
		`{"tool_calls":1000000000001}`:  "usage.json: 1000000000001 tokens",
		`{"turns":9223372036854775808}`: "usage.json: json",
		`{"turns":1.5}`:                 "usage.json: json",
		`{"cost_usd":-0.01}`:            "usage.json: cost_usd is -0.01",
		`{"cost_usd":1e308}`:            "usage.json: cost_usd is 1e+308",
		`{"cost_usd":1e999}`:            "usage.json: json",
		`{"cost_usd":NaN}`:              "usage.json: invalid",
		`{"tool_success_rate":1.5}`:     "usage.json: tool_success_rate is 1.5",
		`[]`:                            "usage.json: json",
	} {
		got, err := parseUsage([]byte(text), known)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if err != nil && got != known || err == nil && (got.Turns != 4 || *known.CostUSD != 0.5 || *known.ToolSuccessRate != 1) {
			t.Errorf("%s: got %+v, known %+v", text, got, known)
		}
	}
}

func TestParseATIF(t *testing.T) {
	messages, use, err := parseATIF([]byte(`{"schema_version":"ATIF-v1.6","session_id":"s","steps":[
		{"source":"system","message":"be good"},
		{"source":"user","message":[{"type":"text","text":"hi"}],"timestamp":"2026-01-01T00:00:00Z"},
		{"source":"agent","message":null,"reasoning_content":"hm","tool_calls":[{"tool_call_id":"c1","function_name":"sh","arguments":{"n":1}},{"tool_call_id":"c2","function_name":"sh","arguments":"raw"}],
		 "observation":{"results":[{"source_call_id":"c1","content":"out"},{"content":null}]},"metrics":{"prompt_tokens":10,"completion_tokens":2,"cached_tokens":4,"cost_usd":0.5}},
		{"source":"agent","message":"bye","metrics":{"prompt_tokens":20,"completion_tokens":1}},
		{"source":"environment","message":"who knows"}],
		"final_metrics":{"total_prompt_tokens":33,"total_steps":5}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []message{
		{Role: "system", Content: "be good"},
		{Role: "user", Content: `[{"type":"text","text":"hi"}]`, TS: "2026-01-01T00:00:00Z"},
		{Role: "assistant", Reasoning: "hm", ToolCalls: []toolCall{
			{ID: "c1", Name: "sh", Arguments: map[string]any{"n": 1.0}}, {ID: "c2", Name: "sh", Arguments: "raw"},
		}},
		{Role: "tool", Content: "out", ToolCallID: "c1"},
		{Role: "tool"},
		{Role: "assistant", Content: "bye"},
		{Role: "user", Content: "who knows"},
	}
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	wantUse := &agentUsage{
		Usage: bundle.Usage{PromptTokens: 33, CompletionTokens: 3, CachedTokens: 4},
		Turns: 2, APICalls: 2, ToolCalls: 2, CostUSD: new(0.5),
	}
	if diff := cmp.Diff(wantUse, use); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}

	for text, want := range map[string]string{
		`{"steps":[]}`:              "want ATIF",
		`{"schema_version":"ATIF"}`: "want ATIF",
		`{"schema_version":1}`:      "cannot unmarshal",
		`[]`:                        "cannot unmarshal",
		``:                          "unexpected end",
		atifWith(`-1`):              "-1 tokens",
		atifWith(`1` + zeros(13)):   "10000000000000 tokens",
		`{"schema_version":"A","steps":[],"final_metrics":{"total_cost_usd":-2}}`: "cost_usd is -2",
	} {
		if _, use, err := parseATIF([]byte(text)); err == nil || use != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want the error %s", text, use, err, want)
		}
	}
	if m, use, err := parseATIF([]byte(`{"schema_version":"A","steps":[]}`)); m != nil || use != nil || err != nil {
		t.Errorf("no steps: %v, %v, %v", m, use, err)
	}
}

func atifWith(tokens string) string {
	return `{"schema_version":"A","steps":[{"source":"agent","metrics":{"prompt_tokens":` + tokens + `}}]}`
}

func zeros(n int) string { return strings.Repeat("0", n) }

func TestParseMessages(t *testing.T) {
	const line = `{"role":"user","content":"x"}`
	for text, want := range map[string]struct {
		n   int
		err string
	}{
		"":                            {0, ""},
		line:                          {1, ""},
		line + "\n\n" + line + "\n":   {2, ""},
		line + "\n{\"role\":\"us":     {1, ""},
		line + "\n{\"role\":\"us\n":   {1, "trajectory.jsonl:2: "},
		line + "\n[]\n" + line + "\n": {1, "trajectory.jsonl:2: "},
		line + "\nnull\n":             {1, "trajectory.jsonl:2: want an object with a role"},
		"\n{}\n":                      {0, "trajectory.jsonl:2: want an object with a role"},
	} {
		got, err := parseMessages([]byte(text))
		if len(got) != want.n || (err == nil) != (want.err == "") || err != nil && !strings.HasPrefix(err.Error(), want.err) {
			t.Errorf("%q: %d messages, %v; want %d, %s", text, len(got), err, want.n, want.err)
		}
	}
}

// encodes checks that what was read can be written and read again.
func encodes(t *testing.T, messages []message) {
	body, err := bundle.EncodeYAML(trajectory{Messages: messages})
	if err != nil {
		t.Fatalf("%+v: %v", messages, err)
	}
	if !utf8.Valid(body) {
		t.Fatalf("not UTF-8: %q", body)
	}
	var back trajectory
	if err := yaml.Unmarshal(body, &back); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	if len(back.Messages) != len(messages) {
		t.Fatalf("%d messages, want %d", len(back.Messages), len(messages))
	}
	for i, m := range back.Messages {
		want := messages[i]
		// What is nothing may come back as nothing of another type; numbers likewise.
		want.ToolCalls, m.ToolCalls = nil, nil
		if diff := cmp.Diff(want, m); diff != "" {
			t.Fatalf("message %d (-want +got):\n%s\n%s", i, diff, body)
		}
	}
}

// counts checks that a usage can be added up and committed.
func counts(t *testing.T, u *agentUsage) {
	if u == nil {
		return
	}
	if err := u.check(); err != nil {
		t.Fatal(err)
	}
	if u.CostUSD != nil && (math.IsNaN(*u.CostUSD) || math.IsInf(*u.CostUSD, 0)) {
		t.Fatalf("cost %v", *u.CostUSD)
	}
	if _, err := json.Marshal(u); err != nil {
		t.Fatal(err)
	}
}

func FuzzParseATIF(f *testing.F) {
	f.Add([]byte(atifWith("5")))
	f.Add([]byte(`{"schema_version":"A","steps":[{"source":"agent","message":"1e5\u0000\ud800: |\n - x","reasoning_content":"\u2028","tool_calls":[{"arguments":{"a":[1e300,null,"~"]}}],"observation":{"results":[{"content":{"x":1}}]}}],"final_metrics":{"total_cost_usd":1e300}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		messages, use, err := parseATIF(data)
		if err != nil && use != nil {
			t.Fatalf("a usage with %v", err)
		}
		encodes(t, messages)
		counts(t, use)
	})
}

func FuzzParseMessages(f *testing.F) {
	f.Add([]byte("{\"role\":\"user\",\"content\":\"x\\r\\n\\t y\"}\n{\"role\":\"tool\",\"tool_calls\":[{\"id\":\"1\",\"name\":\"n\",\"arguments\":{\"k\":\"v\"}}]}\n"))
	f.Add([]byte("{\"role\":\"yes\",\"content\":\"#\\u0085\\ufeff\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		messages, _ := parseMessages(data)
		encodes(t, messages)
	})
}

func FuzzParseUsage(f *testing.F) {
	f.Add([]byte(`{"prompt_tokens":1,"cost_usd":0.1,"tool_success_rate":1,"stuck_detected":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := parseUsage(data, nil)
		if (err == nil) != (u != nil) {
			t.Fatalf("%v, %v", u, err)
		}
		counts(t, u)
	})
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte(`{"termination_reason":"max_turns","detail":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseStatus(data)
		if err != nil && s != (agentStatus{}) {
			t.Fatalf("%+v with %v", s, err)
		}
	})
}
