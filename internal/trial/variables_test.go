// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/manifest"
)

var told = regexp.MustCompile(`(TIDEMILL_[A-Z_]+)=`)

// Loading refuses variables that a program doesn't get, and the page on packs lists those
// that it does; both have to be what programs really get.
func TestTrialVariables(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "pack.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]map[string]bool{}
	programs := []string{manifest.SetupProgram, manifest.AgentProgram, manifest.OracleProgram, manifest.GradeProgram}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		name := strings.Trim(cells[0], "` ")
		if !strings.HasPrefix(name, "TIDEMILL_") || len(cells) != 6 {
			continue
		}
		listed[name] = map[string]bool{}
		for i, p := range programs {
			listed[name][p] = strings.TrimSpace(cells[i+1]) == "yes"
		}
	}
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			j := newJob(t)
			s := &j.Task.Steps[0]
			s.Row, s.AgentRow = []byte(`{"id":"a"}`), []byte(`{}`)
			s.Oracle = &manifest.Program{Command: argv("write out.txt hello")}
			log := "logs/agent.log"
			switch program {
			case manifest.SetupProgram:
				s.Setup = &manifest.Program{Command: argv("env")}
			case manifest.AgentProgram:
				j.agent("env")
			case manifest.OracleProgram:
				j.Run.Run.Agent = manifest.Agent{Name: manifest.OracleAgent}
				s.Oracle.Command = argv("env")
			case manifest.GradeProgram:
				j.grader("env", "judge out.txt hello")
				log = "logs/grader.log"
			}
			got := j.run(t, t.Context())
			names := map[string]bool{}
			for _, m := range told.FindAllStringSubmatch(got.files[log], -1) {
				names[m[1]] = true
			}
			want := manifest.TrialVariables(program)
			slices.Sort(want)
			equal(t, "variables", want, slices.Sorted(maps.Keys(names)))
			for name, by := range listed {
				if by[program] != names[name] {
					t.Errorf("docs/pack.md: %s for the %s: the page says %t", name, program, by[program])
				}
				delete(names, name)
			}
			if len(names) > 0 {
				t.Errorf("docs/pack.md doesn't list %v", slices.Sorted(maps.Keys(names)))
			}
		})
	}
}
