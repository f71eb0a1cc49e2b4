// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"slices"
	"testing"

	"github.com/tidemill/tidemill/manifest"
)

func TestPrograms(t *testing.T) {
	const nowhere = "tidemill-test-nowhere"
	agent := func(runtime, name string, env map[string]string, argv ...string) manifest.Run {
		return manifest.Run{Runtime: manifest.RuntimeConfig{Type: runtime}, Agent: manifest.Agent{Name: name, Command: argv, Env: env}}
	}
	task := manifest.Task{Steps: []manifest.Step{{
		Setup: &manifest.Program{Command: []string{"sh"}}, Oracle: &manifest.Program{Command: []string{nowhere}},
		Grade: manifest.Program{Command: []string{nowhere, "x"}},
	}}}
	agents, graders := `the agent program "`+nowhere+`" isn't on the PATH`, `the grader program "`+nowhere+`" isn't on the PATH`
	oracles := `the oracle program "` + nowhere + `" isn't on the PATH`
	elsewhere := map[string]string{"PATH": "/opt"}
	for _, test := range []struct {
		name string
		run  manifest.Run
		task manifest.Task
		want []string
	}{
		{"all are there", agent("subprocess", "mine", nil, "sh"), manifest.Task{}, nil},
		{"agent and grader", agent("subprocess", "mine", nil, nowhere), task, []string{agents, graders}},
		{"the oracle", agent("subprocess", "oracle", nil), task, []string{oracles, graders}},
		{"a PATH of its own", agent("subprocess", "mine", elsewhere, nowhere), manifest.Task{}, nil},
		{"a task's PATH", agent("subprocess", "mine", nil, "sh"), manifest.Task{Env: elsewhere, Steps: task.Steps}, nil},
		{"a path", agent("subprocess", "mine", nil, "./"+nowhere), manifest.Task{}, nil},
		{"a variable", agent("subprocess", "mine", nil, "${TIDEMILL_WORKDIR}"), manifest.Task{}, nil},
		{"programs of an image", agent("docker", "mine", nil, nowhere), task, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := NewPrograms(&test.run)
			for range 2 { // as for two tasks
				if err := p.Task(&test.task); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(p.Missing(), test.want) {
				t.Errorf("missing %q, want %q", p.Missing(), test.want)
			}
		})
	}
}
