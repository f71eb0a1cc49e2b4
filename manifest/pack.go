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

// Pack is a directory of tasks, opened and checked. It holds no open files and may be
// used by several goroutines.
type Pack struct {
	Name        string
	Description string
	Category    string
	// Dir is absolute.
	Dir      string
	Metadata map[string]any

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

// OpenPack reads and checks the pack.yaml of a directory. Problems with it come back
// as [Problems]. The rows of its dataset are checked by [Pack.Tasks].
func OpenPack(dir string, o LoadOptions) (*Pack, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	if text, fix := notPack(abs); text != "" {
		return nil, Problems{{File: dir, Text: text, Fix: fix}}
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	p := &Pack{Dir: abs, file: filepath.Join(dir, packFileName), idsInMemory: idsInMemory}
	data, err := readSmall(filepath.Join(abs, packFileName))
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	c := newCollector(p.file)
	p.parse(c, data, o)
	if err := c.err(); err != nil {
		return nil, err
	}
	p.Name = cmp.Or(p.spec.Name, filepath.Base(abs))
	p.Description, p.Category, p.Metadata = p.spec.Description, p.spec.Category, p.spec.Metadata
	return p, nil
}

func (p *Pack) parse(c *collector, data []byte, o LoadOptions) {
	root := readDocument(c, data)
	if root == nil || !checkVersion(c, root) {
		return
	}
	x := newExpander(c, o, nil)
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
			Fix: "known: " + strings.Join(packKinds, ", "),
		})
	default:
		return true
	}
	return false
}

// check checks what the types can't say and completes the pack.
func (p *Pack) check(d *decoder) {
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
func (p *Pack) program(d *decoder, entry string, prog *packProgram, program, usual string) {
	if prog == nil {
		return
	}
	if entry != "grade" { // required above
		d.require(join(entry, "command"))
	}
	checkCommand(d, join(entry, "command"), prog.Command, program)
	positive(d, join(entry, "timeout"), prog.Timeout)
	p.dir(d, join(entry, "files"), prog.Files)
	if prog.Files == "" && usual != "" && notDir(filepath.Join(p.Dir, usual)) == "" {
		prog.Files = usual
	}
	p.checkPlaceFiles(d, join(entry, "command"), prog.Command, program, prog.Files)
}

// dir checks a directory of the pack. It has to be inside, or it would be missing
// where the pack is unpacked.
func (p *Pack) dir(d *decoder, entry, dir string) {
	if !d.given(entry) {
		return
	}
	if !filepath.IsLocal(dir) {
		d.problem(entry, quote(dir)+" is not a path inside the pack", "write it relative to the pack, without ..")
		return
	}
	if inside, err := os.OpenInRoot(p.Dir, dir); err != nil {
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
func (p *Pack) path(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(p.Dir, dir)
}
