// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The programs of a trial.
const (
	SetupProgram  = "setup command"
	AgentProgram  = "agent"
	OracleProgram = "oracle"
	GradeProgram  = "grader"
)

const (
	rowVariable      = "TIDEMILL_ROW_FILE"
	testsVariable    = "TIDEMILL_TESTS_DIR"
	solutionVariable = "TIDEMILL_SOLUTION_DIR"
)

// RowFileName is what the file with the whole row is called, beside the files of a
// grader or an oracle.
const RowFileName = "tidemill-row.json"

// commonVariables are given to every program of a trial.
var commonVariables = []string{
	"TIDEMILL_RUN_ID", "TIDEMILL_TASK_ID", "TIDEMILL_TRIAL_INDEX", "TIDEMILL_TRIAL_ID", "TIDEMILL_ATTEMPT",
	"TIDEMILL_WORKDIR", "TIDEMILL_LOGS_DIR", "TIDEMILL_INSTRUCTION_FILE",
}

// TrialVariables are the names of the variables that tell a program of a trial about it.
// Commands may use them as ${NAME}.
func TrialVariables(program string) []string {
	more := map[string][]string{
		AgentProgram:  {rowVariable},
		OracleProgram: {rowVariable, solutionVariable},
		GradeProgram:  {rowVariable, testsVariable},
	}
	return append(slices.Clone(commonVariables), more[program]...)
}

var trialReference = regexp.MustCompile(`\$\{(` + trialPrefix + `[A-Za-z0-9_]*)`)

// checkTrialVariables finds variables in a command that its program won't have: they
// would stay in the text as they are.
func checkTrialVariables(d *decoder, entry string, argv []string, program string) {
	known := TrialVariables(program)
	for i, arg := range argv {
		for _, m := range trialReference.FindAllStringSubmatch(arg, -1) {
			if name := m[1]; !slices.Contains(known, name) {
				d.problem(index(entry, i), "the "+program+" gets no variable "+name, whoGets(name, known))
			}
		}
	}
}

// whoGets says which programs have a variable, or which one may be meant.
func whoGets(name string, known []string) string {
	var others []string
	for _, p := range []string{AgentProgram, OracleProgram, GradeProgram} {
		if slices.Contains(TrialVariables(p), name) {
			others = append(others, p)
		}
	}
	if len(others) > 0 {
		return "it is given to: " + strings.Join(others, ", ")
	}
	return suggest(name, known)
}

// placeFile is an argument that names a file of a place, and nothing else.
var placeFile = regexp.MustCompile(`^\$\{(` + testsVariable + `|` + solutionVariable + `)\}/+([A-Za-z0-9._/+@-]+)$`)

// checkPlaceFiles finds files that a command names and that won't be in the place of its
// phase. files is the directory of the pack that is copied there, empty for none.
func (p *datasetPack) checkPlaceFiles(d *decoder, entry string, argv []string, program, files string) {
	for i, arg := range argv {
		m := placeFile.FindStringSubmatch(arg)
		if m == nil || !slices.Contains(TrialVariables(program), m[1]) || path.Clean(m[2]) == RowFileName {
			continue
		}
		if files == "" {
			usual := map[string]string{testsVariable: "tests", solutionVariable: "solution"}[m[1]]
			d.problem(index(entry, i), "the pack has no directory "+usual+", whose content "+m[1]+" holds", "make it, or name another with files")
		} else if text, fix := lacksFile(filepath.Join(p.root, files), files, m[2]); text != "" {
			d.problem(index(entry, i), text+" in the pack", fix)
		}
	}
}

// lacksFile says that a directory has no such file, or "". shown is the directory's name
// in messages.
func lacksFile(dir, shown, name string) (text, fix string) {
	name = path.Clean(name)
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
		return "", ""
	}
	shown = path.Clean(filepath.ToSlash(shown))
	if near := nearest(path.Base(name), namesIn(filepath.Join(dir, path.Dir(name)))); near != "" {
		fix = "did you mean " + path.Join(shown, path.Dir(name), near) + "?"
	}
	return "no such file: " + path.Join(shown, name), fix
}

func namesIn(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

var interpreters = []string{"sh", "bash", "dash", "zsh", "ksh", "python", "python3", "node", "ruby", "perl"}

// scriptIn returns which argument of a command is the file that is run: the program, or
// what an interpreter is given.
func scriptIn(argv []string) int {
	if len(argv) == 0 || !slices.Contains(interpreters, path.Base(argv[0])) {
		return 0
	}
	for i, arg := range argv[1:] {
		switch {
		case arg == "-c" || arg == "-m" || arg == "-e":
			return 0
		case !strings.HasPrefix(arg, "-"):
			return i + 1
		}
	}
	return 0
}

// checkScript finds an agent's program that agent.files should bring and doesn't.
func checkScript(d *decoder, a *Agent) {
	if len(a.Command) == 0 {
		return
	}
	i, name := scriptIn(a.Command), filepath.Base(a.Files)
	rest, ok := strings.CutPrefix(path.Clean(a.Command[i]), name+"/")
	if !ok || strings.Contains(rest, "$") {
		return
	}
	if text, fix := lacksFile(a.Files, name, rest); text != "" {
		d.problem(index("agent.command", i), text+" in agent.files", fix)
	}
}
