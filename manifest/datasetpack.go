// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"gopkg.in/yaml.v3"
)

// datasetPack is a pack of a template and a file with a row for each task. It holds no
// open files and may be used by several goroutines.
type datasetPack struct {
	root string // the pack's directory, absolute
	spec packFile
	// file is pack.yaml, for messages; expanded says that variables were filled in.
	file     string
	expanded bool
	data     dataset
	// idsInMemory is where checking for duplicates goes to disk.
	idsInMemory int

	instruction *template.Template
	env         map[string]*template.Template
}

// openDatasetPack reads and checks a pack.yaml. Its rows are checked by tasks.
func openDatasetPack(shown, root string, o LoadOptions) (*datasetPack, error) {
	p := &datasetPack{root: root, file: filepath.Join(shown, packFileName), idsInMemory: idsInMemory}
	data, err := readSmall(filepath.Join(root, packFileName))
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", shown, err)
	}
	c := newCollector(p.file)
	p.parse(c, data, o)
	return p, c.err()
}

func (p *datasetPack) artifacts() []string { return slices.Clone(p.spec.Artifacts) }

func (p *datasetPack) parse(c *collector, data []byte, o LoadOptions) {
	root := readDocument(c, data)
	if root == nil || !checkVersion(c, root) {
		return
	}
	x := newExpander(c, o, o.secrets)
	x.tree(root, "")
	if !checkKind(c, root) {
		return
	}
	p.expanded = len(x.used) > 0
	d := newDecoder(x)
	d.decode(root, reflect.ValueOf(&p.spec).Elem(), "")
	p.check(d)
}

// checkKind comes first, because the kind decides which keys there are.
func checkKind(c *collector, root *yaml.Node) bool {
	n := child(root, "kind")
	switch {
	case n == nil || isNull(n):
		c.add(Problem{Line: root.Line, Col: root.Column, Entry: "kind", Text: "is missing", Fix: "write kind: " + kindDataset})
	case !slices.Contains(packKinds, n.Value):
		c.add(Problem{
			Line: n.Line, Col: n.Column, Entry: "kind", Text: describe(n) + " is no kind of pack that this version knows",
			Fix: suggest(n.Value, packKinds),
		})
	default:
		return true
	}
	return false
}

// check checks what the types can't say and completes the pack.
func (p *datasetPack) check(d *decoder) {
	s := &p.spec
	d.require("version", "dataset.path", "dataset.id_field", "instruction", "grade.command")
	if d.given("name") && strings.TrimSpace(s.Name) == "" {
		d.problem("name", "is empty", "name the pack, or leave it out")
	}
	if d.given("dataset.id_field") && s.Dataset.IDField == "" {
		d.problem("dataset.id_field", "is empty", "name the field of a row that holds the task's id")
	}
	for i, f := range s.AgentFields {
		if f == "" || slices.Contains(s.AgentFields[:i], f) {
			d.problem(index("agent_fields", i), quote(f)+" is empty or already in the list", "name each field once")
		}
	}
	checkEnv(d, "env", s.Env)
	p.checkTemplates(d)
	p.dir(d, "files", s.Files)
	p.program(d, "setup", s.Setup, SetupProgram, "")
	// What would be accepted and have no effect.
	if d.given("oracle.timeout") {
		d.problem("oracle.timeout", "the oracle has the agent's time", "write agent_timeout, or agent.timeout in the run file")
	}
	if d.given("setup.files") {
		d.problem("setup.files", "the setup command gets no files of its own", "put them into the directory that files names, and remove them in setup")
	}
	p.program(d, "oracle", s.Oracle, OracleProgram, "solution")
	grade := s.Grade.program()
	p.program(d, "grade", grade, GradeProgram, "tests")
	s.Grade.Files = grade.Files
	positive(d, "agent_timeout", s.AgentTimeout)
	oneOf(d, "agent_processes", s.AgentProcesses, agentProcesses)
	s.AgentProcesses = cmp.Or(s.AgentProcesses, "end")
	checkRelativeGlobs(d, "artifacts", s.Artifacts)
	if s.Regrade != nil {
		d.require("regrade.from")
		oneOf(d, "regrade.from", s.Regrade.From, []string{FromArtifacts})
	}
	p.openDataset(d)
}

// program checks one of the pack's programs. usual is the directory that it gets when
// none is named and this one exists.
func (p *datasetPack) program(d *decoder, entry string, prog *packProgram, program, usual string) {
	if prog == nil {
		return
	}
	if entry != "grade" { // required above
		d.require(join(entry, "command"))
	}
	checkCommand(d, join(entry, "command"), prog.Command, program)
	positive(d, join(entry, "timeout"), prog.Timeout)
	p.dir(d, join(entry, "files"), prog.Files)
	if prog.Files == "" && usual != "" && notDir(filepath.Join(p.root, usual)) == "" {
		prog.Files = usual
	}
	p.checkPlaceFiles(d, join(entry, "command"), prog.Command, program, prog.Files)
}

// dir checks a directory of the pack. It has to be inside, or it would be missing
// where the pack is unpacked.
func (p *datasetPack) dir(d *decoder, entry, dir string) {
	if !d.given(entry) {
		return
	}
	if !filepath.IsLocal(dir) {
		d.problem(entry, quote(dir)+" is not a path inside the pack", "write it relative to the pack, without ..")
		return
	}
	if inside, err := os.OpenInRoot(p.root, dir); err != nil {
		d.problem(entry, "no such directory in the pack: "+dir, "")
	} else {
		info, err := inside.Stat()
		_ = inside.Close()
		if err != nil || !info.IsDir() {
			d.problem(entry, "is not a directory: "+dir, "")
		}
	}
}

// path makes a directory of the pack absolute; empty stays empty.
func (p *datasetPack) path(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(p.root, dir)
}
