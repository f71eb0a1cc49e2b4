// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"

	"gopkg.in/yaml.v3"
)

// A variable that nothing uses is a slip of the keyboard: a matrix over it would run the
// same thing several times, and a value that was given would have no effect.

// checkUnused reports variables of the matrix that neither the run file nor one of its
// packs uses, and completes what o.uses knows with the packs.
func checkUnused(c *collector, root *yaml.Node, o LoadOptions, runs []*Run) {
	matrix := child(root, "matrix")
	hasMatrix := matrix != nil && matrix.Kind == yaml.MappingNode
	if !hasMatrix && len(o.Vars) == 0 {
		return // nobody asks what is used
	}
	if !packsUse(o, runs) || !hasMatrix {
		return
	}
	for i := 0; i+1 < len(matrix.Content); i += 2 {
		key, val := matrix.Content[i], matrix.Content[i+1]
		if _, given := o.Vars[key.Value]; given || o.uses[key.Value] || !variableName.MatchString(key.Value) {
			continue // all right, or reported already
		}
		c.add(Problem{
			Line: val.Line, Col: val.Column, Entry: join("matrix", key.Value), Text: "nothing uses ${" + key.Value + "}",
			Fix: unusedFix(key.Value, o.uses, "write it where its values belong, such as in agent.env"),
		})
	}
}

// packsUse adds the variables of the runs' packs. It returns false when one of them can't
// be read, which is reported elsewhere.
func packsUse(o LoadOptions, runs []*Run) bool {
	seen := map[string]bool{}
	for _, r := range runs {
		for _, dir := range r.Packs {
			if !seen[dir] && !packUses(o, dir) {
				return false
			}
			seen[dir] = true
		}
	}
	return true
}

func packUses(o LoadOptions, dir string) bool {
	f, text, _ := packFormat(dir)
	if text != "" {
		return false
	}
	if f != nativeFormat {
		return harborUses(o, dir, f)
	}
	data, err := readSmall(filepath.Join(dir, packFileName))
	if err != nil {
		return false
	}
	c := newCollector(dir)
	pack := readDocument(c, data)
	if pack == nil {
		return false
	}
	newExpander(c, LoadOptions{uses: o.uses}, nil).tree(pack, "")
	return true
}

var variableUse = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)`)

// harborUses takes whatever looks like a variable in a task.toml for one: that is quick,
// and a name too many only keeps a slip from being told.
func harborUses(o LoadOptions, dir string, f format) bool {
	p, err := openHarborPack(dir, dir, f, LoadOptions{})
	if err != nil {
		return false
	}
	for _, name := range p.names {
		data, err := readSmall(filepath.Join(p.parent, name, taskFileName))
		if err != nil {
			return false
		}
		for _, m := range variableUse.FindAllSubmatch(data, -1) {
			o.uses[string(m[1])] = true
		}
	}
	return true
}

// UnusedVars says which of o.Vars none of the runs and their packs uses; nil when there is
// none. The runs are all that were loaded with o.
func UnusedVars(o LoadOptions, runs ...*Run) error {
	uses := map[string]bool{}
	for _, r := range runs {
		for _, name := range r.Uses {
			uses[name] = true
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.Vars)) {
		if !uses[name] {
			errs = append(errs, fmt.Errorf("variable %s: nothing uses ${%s}; %s", name, name,
				unusedFix(name, uses, "leave it out, or use it in a run file or pack")))
		}
	}
	return errors.Join(errs...)
}

func unusedFix(name string, uses map[string]bool, otherwise string) string {
	if near := nearest(name, slices.Sorted(maps.Keys(uses))); near != "" && near != name {
		return "did you mean " + near + "?"
	}
	return otherwise
}
