// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Files and directories of a Harbor task.
const (
	environmentDir  = "environment"
	dockerfileName  = "Dockerfile"
	composeName     = "docker-compose.yaml"
	solutionDir     = "solution"
	solveFile       = "solve.sh"
	testsDir        = "tests"
	testFile        = "test.sh"
	stepsDir        = "steps"
	stepWorkdir     = "workdir"
	stepSetupFile   = "setup.sh"
	instructionName = "instruction.md"
)

// harborMajor is the major version of task.toml that is known.
const harborMajor = 1

// leaveOut is what to do about a task that can't run.
const leaveOut = "leave the task out with select.exclude"

// harborLoad is one task on its way from its directory.
type harborLoad struct {
	pack  *harborPack
	dir   string // absolute
	shown string // the same for messages
	id    string
	file  harborFile
	task  *Task

	c   *collector
	d   *decoder
	env *harborEnv
}

// load reads a task. What is wrong with it is in problems; an error is trouble in reading.
func (p *harborPack) load(name string) (*harborLoad, error) {
	data, err := readSmall(filepath.Join(p.parent, name, taskFileName))
	if err != nil {
		return nil, err
	}
	return p.parse(name, data), nil
}

// parse is load with a task.toml that was read.
func (p *harborPack) parse(name string, data []byte) *harborLoad {
	l := &harborLoad{pack: p, dir: filepath.Join(p.parent, name), shown: p.shownDir(name), id: name, task: &Task{}}
	l.c = newCollector(filepath.Join(l.shown, taskFileName))
	root := readTOML(l.c, data)
	if root == nil {
		return l
	}
	l.d = newDecoder(newExpander(l.c, LoadOptions{}, nil))
	l.d.typed, l.d.unknown = true, l.warn
	decodeInto(l.d, root, "", &l.file)
	l.env = &harborEnv{d: l.d, stored: p.stored, options: p.options, warn: l.warn}
	l.name()
	if l.version() {
		l.make()
	}
	return l
}

func (l *harborLoad) warn(p Problem) {
	p.File = cmp.Or(p.File, l.c.file)
	l.task.Warnings = append(l.task.Warnings, p)
}

func (l *harborLoad) problems() Problems {
	if err := l.c.err(); err != nil {
		return err.(Problems) //nolint:errorlint // a collector returns nothing else
	}
	return nil
}

// name finds out what the task is called: as its author says, else as its directory.
func (l *harborLoad) name() {
	const entry = "task.name"
	at := ""
	if l.d.given(entry) {
		at = entry
		if l.id = l.file.Task.Name; strings.TrimSpace(l.id) == "" {
			l.d.problem(entry, "is empty", "name the task, or leave it out")
		}
	}
	if text, fix := badID(l.id); text != "" {
		l.d.problem(at, text, fix)
	}
}

func (l *harborLoad) duplicate(first string) Problem {
	p := Problem{
		File: l.c.file, Text: fmt.Sprintf("the id %s is already that of %s", quote(l.id), first),
		Fix: "give each task a name of its own",
	}
	if l.d != nil && l.d.given("task.name") {
		p.Entry, p.Line = "task.name", l.d.places["task.name"].Line
	}
	return p
}

// version refuses what a newer program wrote before anything else is said about it.
func (l *harborLoad) version() bool {
	entry, version := "schema_version", string(l.file.SchemaVersion)
	if !l.d.given(entry) {
		entry, version = "version", string(l.file.Version)
	}
	if !l.d.given(entry) {
		return true
	}
	major, _, _ := strings.Cut(version, ".")
	switch n, err := strconv.Atoi(major); {
	case err != nil || n < 1:
		l.d.problem(entry, quote(version)+" is no version of task.toml", fmt.Sprintf(`write for example "%d.1"`, harborMajor))
	case n > harborMajor:
		at := l.d.places[entry]
		l.c.found = nil // what else seems wrong may be right in that version
		l.c.add(Problem{
			Line: at.Line, Entry: entry, Text: fmt.Sprintf("%s is newer than this program, which knows version %d", version, harborMajor),
			Fix: "use a newer tidemill, or " + leaveOut,
		})
		return false
	}
	return true
}

// make builds the task of what the file and the directory say.
func (l *harborLoad) make() {
	l.refuse()
	f, t := &l.file, l.task
	t.ID, t.AgentProcesses = l.id, "keep"
	t.Metadata, t.Category = l.about()
	t.Collect = l.collect("artifacts", f.Artifacts, nil)
	l.environment()
	l.network()
	l.users()
	positiveNumber(l.d, "agent.timeout_sec", f.Agent.Timeout)
	positiveNumber(l.d, "verifier.timeout_sec", f.Verifier.Timeout)
	if len(f.Steps) == 0 {
		t.Steps = []Step{l.onlyStep()}
	} else {
		l.steps()
	}
}

// about is what the file says for people.
func (l *harborLoad) about() (metadata map[string]any, category string) {
	f := &l.file
	metadata = map[string]any{}
	for k, v := range f.Metadata {
		metadata[k] = v
	}
	category, _ = f.Metadata["category"].(string)
	task := map[string]any{}
	if f.Task.Version != nil {
		task["version"] = f.Task.Version
	}
	if f.Task.Description != "" {
		task["description"] = f.Task.Description
	}
	if len(f.Task.Authors) > 0 {
		task["authors"] = f.Task.Authors
	}
	if len(f.Task.Keywords) > 0 {
		task["keywords"] = f.Task.Keywords
	}
	for k, v := range map[string]any{"task": task, "source": f.Source} {
		if _, taken := metadata[k]; !taken && v != "" && !(k == "task" && len(task) == 0) {
			metadata[k] = v
		}
	}
	if len(metadata) == 0 {
		return nil, category
	}
	return metadata, category
}
