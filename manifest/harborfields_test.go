// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// What a line of task.toml, or a file, becomes in a task.
func TestHarborFields(t *testing.T) {
	full, none := Network{Policy: "full_internet"}, Network{Policy: "no_internet"}
	limited := func(hosts ...string) Network { return Network{Policy: "limited_internet", Allow: hosts} }
	phases := func(setup, agent, grade Network) map[string]Network {
		return map[string]Network{"setup": setup, "agent": agent, "grade": grade}
	}
	step := "[[steps]]\nname = \"s\"\n"
	for name, test := range map[string]struct {
		toml  string
		files map[string]string // beside those of every task; "-" takes one away
		of    func(*Task) any
		want  any
	}{
		"an image goes before a Dockerfile": {
			toml: "[environment]\ndocker_image = \"org/x:1\"", want: []any{"org/x:1", true},
			of: func(t *Task) any { return []any{t.Image, t.Build == nil} },
		},
		"no environment, no limits": {
			files: map[string]string{"environment/Dockerfile": "-"}, want: []any{"", true, Resources{}},
			of: func(t *Task) any { return []any{t.Image, t.Build == nil, t.Resources} },
		},
		"time to build": {
			toml: "[environment]\nbuild_timeout_sec = 1.5", want: Duration(1500 * time.Millisecond),
			of: func(t *Task) any { return t.Build.Timeout },
		},
		"resources": {
			toml: "[environment]\ncpus = 2\nmemory_mb = 512\nstorage_mb = 99\ngpus = 1\ngpu_types = [\"H100\"]",
			want: Resources{CPUs: 2, Memory: 512 << 20, GPUs: 1, GPUTypes: []string{"H100"}},
			of:   func(t *Task) any { return t.Resources },
		},
		"older resources": {
			toml: "[environment]\nmemory = \"4G\"\nstorage = \"10G\"", want: Resources{CPUs: 1, Memory: 4 << 30},
			of: func(t *Task) any { return t.Resources },
		},
		"both ways of writing that agree": {
			toml: "[environment]\nmemory = \"1.5g\"\nmemory_mb = 1536", want: Size(1536 << 20),
			of: func(t *Task) any { return t.Resources.Memory },
		},
		"no internet, the older way": {
			toml: "[environment]\nallow_internet = false", want: phases(none, none, none),
			of: func(t *Task) any { return t.Network },
		},
		"the newer way goes first": {
			toml: "[environment]\nallow_internet = false\nnetwork_mode = \"public\"", want: phases(full, full, full),
			of: func(t *Task) any { return t.Network },
		},
		"hosts alone are a list": {
			toml: "[environment]\nallowed_hosts = [\"PyPI.org.\", \"*.example.com\", \"pypi.org\"]",
			want: phases(limited("pypi.org", "*.example.com"), limited("pypi.org", "*.example.com"), limited("pypi.org", "*.example.com")),
			of:   func(t *Task) any { return t.Network },
		},
		"a network for each phase": {
			toml: "[agent]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"a.org\"]\n[verifier]\nnetwork_mode = \"no-network\"",
			want: phases(full, limited("a.org"), none), of: func(t *Task) any { return t.Network },
		},
		"a list of nothing": {
			toml: "[agent]\nnetwork_mode = \"allowlist\"", want: phases(full, none, full),
			of: func(t *Task) any { return t.Network },
		},
		"a network that all steps have": {
			files: map[string]string{"steps/s/instruction.md": ""}, toml: step + "[steps.agent]\nnetwork_mode = \"no-network\"",
			want: phases(full, none, full), of: func(t *Task) any { return t.Network },
		},
		"users": {
			toml: "[agent]\nuser = \"worker\"\n[verifier]\nuser = 0",
			want: []any{map[string]string{"setup": "worker", "agent": "worker"}, "0"},
			of:   func(t *Task) any { return []any{t.Users, t.Steps[0].Grade.User} },
		},
		"users of steps": {
			files: map[string]string{"steps/s/instruction.md": ""},
			toml:  "[agent]\nuser = \"a\"\n[verifier]\nuser = \"v\"\n" + step + "[steps.agent]\nuser = \"b\"\n[steps.verifier]\nuser = 7",
			want:  []any{map[string]string{"setup": "b", "agent": "b"}, "7"},
			of:    func(t *Task) any { return []any{t.Users, t.Steps[0].Grade.User} },
		},
		"times": {
			want: []any{Duration(0), Duration(10 * time.Minute)},
			of:   func(t *Task) any { return []any{t.Steps[0].AgentTimeout, t.Steps[0].Grade.Timeout} },
		},
		"times of steps are the task's unless they say so": {
			files: map[string]string{"steps/s/instruction.md": ""},
			toml:  "[agent]\ntimeout_sec = 5\n[verifier]\ntimeout_sec = 7\n" + step,
			want:  []any{Duration(5 * time.Second), Duration(7 * time.Second)},
			of:    func(t *Task) any { return []any{t.Steps[0].AgentTimeout, t.Steps[0].Grade.Timeout} },
		},
		"scores of steps": {
			files: map[string]string{"steps/s/instruction.md": ""}, toml: "multi_step_reward_strategy = \"final\"\n" + step,
			want: LastGraded, of: func(t *Task) any { return t.StepScores },
		},
		"least rewards by name": {
			files: map[string]string{"steps/s/instruction.md": ""}, toml: step + "min_reward = {safety = 1, style = 0.5}",
			want: []any{true, map[string]float64{"safety": 1, "style": 0.5}},
			of:   func(t *Task) any { return []any{t.Steps[0].MinReward == nil, t.Steps[0].MinRewards} },
		},
		"a step graded by the task's tests": {
			files: map[string]string{"steps/s/instruction.md": "", "steps/s/tests/data": ""}, toml: step,
			want: []any{"tests", filepath.Join("steps", "s", "tests"), []string{"bash", "${TIDEMILL_TESTS_DIR}/test.sh"}},
			of: func(t *Task) any {
				g, root := t.Steps[0].Grade, filepath.Dir(t.Build.Context)
				base, _ := filepath.Rel(root, g.Base)
				own, _ := filepath.Rel(root, g.Files)
				return []any{base, own, g.Command}
			},
		},
		"tools": {
			toml: "[environment]\nskills_dir = \"/skills\"\n[[environment.mcp_servers]]\nname = \"a\"\nurl = \"http://a/sse\"\n" +
				"[[environment.mcp_servers]]\nname = \"b\"\ntransport = \"http\"\nurl = \"http://b\"\n" +
				"[[environment.mcp_servers]]\nname = \"c\"\ntransport = \"stdio\"\ncommand = \"c\"\nargs = [\"-x\"]\n",
			want: `{
  "mcp_servers": [
    {
      "name": "a",
      "transport": "sse",
      "url": "http://a/sse"
    },
    {
      "name": "b",
      "transport": "streamable-http",
      "url": "http://b"
    },
    {
      "name": "c",
      "transport": "stdio",
      "command": "c",
      "args": [
        "-x"
      ]
    }
  ],
  "skills_dir": "/skills"
}
`,
			of: func(t *Task) any { return string(t.Steps[0].Input["task.json"]) },
		},
		"artifacts": {
			toml: `artifacts = ["/app/out", "rel", {source = "/var/log/x", destination = "logs/x"}, "/a/log", "/b/log/"]`,
			want: []Collect{{"/app/out", ""}, {"rel", ""}, {"/var/log/x", "logs/x"}, {"/a/log", "a/log"}, {"/b/log/", "b/log"}},
			of:   func(t *Task) any { return t.Collect },
		},
		"a healthcheck by default": {
			toml: "[environment.healthcheck]\ncommand = \"true\"",
			want: &Healthcheck{
				Command: []string{"bash", "-c", "true"}, Interval: Duration(5 * time.Second), Timeout: Duration(30 * time.Second),
				StartInterval: Duration(5 * time.Second), Retries: 3,
			},
			of: func(t *Task) any { return t.Healthcheck },
		},
		"a healthcheck that says all": {
			toml: "[environment.healthcheck]\ncommand = \"true\"\ninterval_sec = 0\ntimeout_sec = 1\nstart_period_sec = 60\nstart_interval_sec = 0.5\nretries = 1",
			want: &Healthcheck{
				Command: []string{"bash", "-c", "true"}, Timeout: Duration(time.Second), StartPeriod: Duration(time.Minute),
				StartInterval: Duration(time.Second / 2), Retries: 1,
			},
			of: func(t *Task) any { return t.Healthcheck },
		},
		"metadata": {
			toml: "source = \"tb\"\n[task]\nname = \"o/n\"\ndescription = \"d\"\nauthors = [\"me\"]\nversion = 3\n" +
				"[metadata]\ncategory = \"games\"\nday = 2026-01-02\nmoment = 2026-01-02T03:04:05.5Z\nclock = 03:04:05\nx = {y = [1, 2.5, true]}",
			want: []any{"o/n", "games", map[string]any{
				"source": "tb", "task": map[string]any{"description": "d", "authors": []any{"me"}, "version": int64(3)},
				"category": "games", "day": "2026-01-02", "moment": "2026-01-02T03:04:05.5Z", "clock": "03:04:05",
				"x": map[string]any{"y": []any{int64(1), 2.5, true}},
			}},
			of: func(t *Task) any { return []any{t.ID, t.Category, t.Metadata} },
		},
		"metadata keeps its own words": {
			toml: "source = \"tb\"\n[metadata]\nsource = \"mine\"\ntask = 1\n[task]\ndescription = \"d\"",
			want: map[string]any{"source": "mine", "task": int64(1)}, of: func(t *Task) any { return t.Metadata },
		},
		"no steps in a list of them": {
			toml: "steps = []", want: 1, of: func(t *Task) any { return len(t.Steps) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := small("one", test.files)
			files["one/task.toml"] = test.toml
			for k, v := range files {
				if v == "-" {
					delete(files, k)
				}
			}
			_, task := only(t, open(t, write(t, files)))
			if len(task.Warnings) > 0 {
				t.Errorf("warnings %v", task.Warnings)
			}
			if diff := cmp.Diff(test.want, test.of(task), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestShebang(t *testing.T) {
	dir := t.TempDir()
	for line, want := range map[string][]string{
		"#!/bin/sh\nexit":                 {"/bin/sh", "P"},
		"#!/bin/bash -eu -o pipefail\n":   {"/bin/bash", "-eu -o pipefail", "P"},
		"#! /usr/bin/env  python3\r\nx\n": {"/usr/bin/env", "python3", "P"},
		"#!/usr/bin/env -S uv run -s":     {"/usr/bin/env", "-S uv run -s", "P"},
		"#!\necho":                        {"bash", "P"},
		"echo\n#!/bin/sh":                 {"bash", "P"},
		"":                                {"bash", "P"},
	} {
		file := filepath.Join(dir, "x.sh")
		put(t, file, line)
		l := &harborLoad{c: newCollector("x")}
		if diff := cmp.Diff(want, l.script(file, "P")); diff != "" || len(l.c.found) > 0 {
			t.Errorf("%q: %s %v", line, diff, l.c.found)
		}
	}
}

func TestCanary(t *testing.T) {
	for text, want := range map[string]string{
		"do it":                      "do it",
		"\n  # A heading\n\ndo it\n": "\n  # A heading\n\ndo it\n",
		"<!-- Canary 1 -->\n# b canary\n\n\ndo\n": "do\n",
		"# harbor-canary 1\n# Heading\n":          "# Heading\n",
		"do it\n# canary\n":                       "do it\n# canary\n",
		"<!-- canary\n-->\ndo":                    "<!-- canary\n-->\ndo",
		"# canary":                                "",
	} {
		if got := withoutCanary(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
