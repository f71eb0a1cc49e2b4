// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"maps"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// Names of files that we put into places.
const (
	instructionFile = "instruction.md"
	agentRowFile    = "row.json"
	fullRowFile     = manifest.RowFileName
)

// baseEnv is what we tell every program about the attempt.
func (a *attempt) baseEnv() map[string]string {
	return map[string]string{
		"TIDEMILL_RUN_ID":           a.Run.RunID,
		"TIDEMILL_TASK_ID":          a.Row.TaskID,
		"TIDEMILL_TRIAL_INDEX":      strconv.Itoa(a.Row.TrialIndex),
		"TIDEMILL_TRIAL_ID":         a.Row.TrialID,
		"TIDEMILL_ATTEMPT":          strconv.Itoa(a.Attempt),
		"TIDEMILL_WORKDIR":          a.box.Path(runtime.Workdir),
		"TIDEMILL_LOGS_DIR":         a.box.Path(runtime.Logs),
		"TIDEMILL_INSTRUCTION_FILE": path.Join(a.box.Path(runtime.Input), instructionFile),
	}
}

// programEnv is what a program gets: the task's variables, those of its own, later ones
// before earlier ones, and before all else what we say about the attempt.
func (a *attempt) programEnv(own ...map[string]string) map[string]string {
	env := map[string]string{}
	maps.Copy(env, a.Task.Env)
	for _, more := range own {
		maps.Copy(env, more)
	}
	maps.Copy(env, a.baseEnv())
	return env
}

func (a *attempt) agentEnv() map[string]string {
	env := a.programEnv(a.Run.Run.Agent.Env, a.Secrets)
	if a.step.AgentRow != nil {
		env["TIDEMILL_ROW_FILE"] = path.Join(a.box.Path(runtime.Input), agentRowFile)
	}
	return env
}

func (a *attempt) oracleEnv() map[string]string {
	env := a.programEnv(a.step.Oracle.Env)
	env["TIDEMILL_SOLUTION_DIR"] = a.box.Path(runtime.Solution)
	if a.step.Row != nil {
		env["TIDEMILL_ROW_FILE"] = path.Join(a.box.Path(runtime.Solution), fullRowFile)
	}
	return env
}

func (a *attempt) gradeEnv() map[string]string {
	env := a.programEnv(a.step.Grade.Env)
	env["TIDEMILL_TESTS_DIR"] = a.box.Path(runtime.Tests)
	if a.step.Row != nil {
		env["TIDEMILL_ROW_FILE"] = path.Join(a.box.Path(runtime.Tests), fullRowFile)
	}
	return env
}

// expandArgv replaces ${TIDEMILL_…} by what the program will see in its environment.
// Everything else is passed on as it stands.
func expandArgv(argv []string, env map[string]string) []string {
	out := make([]string, len(argv))
	for i, arg := range argv {
		out[i] = expand(arg, env)
	}
	return out
}

func expand(s string, env map[string]string) string {
	const open = "${TIDEMILL_"
	var b strings.Builder
	for {
		at := strings.Index(s, open)
		if at < 0 {
			b.WriteString(s)
			return b.String()
		}
		end := strings.IndexByte(s[at:], '}')
		if end < 0 {
			b.WriteString(s)
			return b.String()
		}
		name := s[at+2 : at+end]
		b.WriteString(s[:at])
		if v, ok := env[name]; ok {
			b.WriteString(v)
		} else {
			b.WriteString(s[at : at+end+1])
		}
		s = s[at+end+1:]
	}
}

// SecretsFrom looks the named secrets up in this process's environment. missing names
// those that are not set, or empty, which is what a missing one looks like where scripts
// pass variables on.
func SecretsFrom(names []string) (values map[string]string, missing []string) {
	values = map[string]string{}
	for _, name := range names {
		if v := os.Getenv(name); v != "" {
			values[name] = v
		} else {
			missing = append(missing, name)
		}
	}
	return values, missing
}
