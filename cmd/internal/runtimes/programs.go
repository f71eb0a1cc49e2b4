// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

// Programs looks for the programs of a run where they are this machine's. What it misses is
// for people to judge: a setup command may bring it, and another machine may have it.
type Programs struct {
	run     *manifest.Run
	missing []string
}

// NewPrograms begins with the agent's. Where sandboxes have programs of their own there is
// nothing to miss.
func NewPrograms(run *manifest.Run) *Programs {
	p := &Programs{run: run}
	p.look("agent", run.Agent.Command, run.Agent.Env)
	return p
}

// Task looks for those of a task. It refuses none.
func (p *Programs) Task(t *manifest.Task) error {
	for _, step := range t.Steps {
		for _, own := range []struct {
			role    string
			program *manifest.Program
		}{{"setup", step.Setup}, {"oracle", step.Oracle}, {"grader", &step.Grade}} {
			wanted := own.role != "oracle" || p.run.Agent.Name == manifest.OracleAgent
			if own.program != nil && wanted {
				p.look(own.role, own.program.Command, t.Env, own.program.Env)
			}
		}
	}
	return nil
}

// Missing says which weren't found.
func (p *Programs) Missing() []string { return p.missing }

func (p *Programs) look(role string, argv []string, envs ...map[string]string) {
	if p.run.Runtime.Type != subprocess.Type || len(argv) == 0 || os.Getenv("PATH") == "" {
		return
	}
	for _, env := range envs {
		if _, other := env["PATH"]; other {
			return
		}
	}
	name := argv[0]
	if strings.ContainsAny(name, "/$") {
		return // a path, which may be one in the sandbox
	}
	if _, err := exec.LookPath(name); err == nil {
		return
	}
	if text := fmt.Sprintf("the %s program %q isn't on the PATH", role, name); !slices.Contains(p.missing, text) {
		p.missing = append(p.missing, text)
	}
}
