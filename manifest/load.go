// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"
)

// Load reads a run file: one run, or one for each combination of its matrix. What is
// wrong in the file comes back as [Problems]; a file that can't be read at all as
// another error.
func Load(path string, o LoadOptions) ([]*Run, error) {
	data, err := readSmall(path)
	if err != nil {
		return nil, fmt.Errorf("run file: %w", err)
	}
	return Parse(path, data, o)
}

// Parse is [Load] for a file that was already read. file gives it a name in messages
// and anchors its relative paths.
func Parse(file string, data []byte, o LoadOptions) ([]*Run, error) {
	c := newCollector(file)
	root := readDocument(c, data)
	if root == nil || !checkVersion(c, root) {
		return nil, c.err()
	}
	base, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("run file %s: %w", file, err)
	}
	secrets := secretNames(root)
	o.uses = map[string]bool{}
	combinations := matrixOf(c, root, o, secrets)
	runs := make([]*Run, 0, len(combinations))
	for _, values := range combinations {
		if c.full() {
			break
		}
		r := parseRun(c, cloneTree(root), o.with(values), secrets, base)
		for k, v := range values {
			if r.Matrix == nil {
				r.Matrix = map[string][]string{}
			}
			r.Matrix[k] = []string{v}
		}
		r.File = file
		runs = append(runs, r)
	}
	checkUnused(c, root, o, runs)
	for _, r := range runs {
		r.Uses = slices.Sorted(maps.Keys(o.uses))
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return runs, nil
}

func parseRun(c *collector, root *yaml.Node, o LoadOptions, secrets map[string]bool, base string) *Run {
	without(root, "matrix")
	x := newExpander(c, o, secrets)
	x.tree(root, "")
	d := newDecoder(x)
	r := &Run{}
	before := len(c.found)
	d.decode(root, reflect.ValueOf(r).Elem(), "")
	r.setDefaults(d)
	checkRun(d, r, o, base)
	if len(c.found) == before {
		checkSecretValues(d, o, secrets)
	}
	return r
}

// PackOptions returns the options for the packs of this run: its matrix value counts
// as a variable there too, its secrets as secrets, and where its runtime needs an image
// that it doesn't name, its tasks have to.
func (r *Run) PackOptions(o LoadOptions) LoadOptions {
	o = o.with(r.Values())
	o.secrets = map[string]bool{}
	for _, name := range slices.Concat(r.Agent.Secrets, r.TaskSecrets) {
		o.secrets[name] = true
	}
	if o.imageless = ""; o.lacksImage(r) {
		o.imageless = r.Runtime.Type
	}
	return o
}

// Values are the values that a run of a matrix has, by variable; empty without a matrix.
func (r *Run) Values() map[string]string {
	values := map[string]string{}
	for k, v := range r.Matrix {
		if len(v) == 1 {
			values[k] = v[0]
		}
	}
	return values
}

// with returns options in which these variables have these values.
func (o LoadOptions) with(values map[string]string) LoadOptions {
	if len(values) == 0 {
		return o
	}
	vars := make(map[string]string, len(o.Vars)+len(values))
	for k, v := range o.Vars {
		vars[k] = v
	}
	for k, v := range values {
		vars[k] = v
	}
	o.Vars = vars
	return o
}

// checkVersion refuses what a newer program wrote before anything else is said about
// it.
func checkVersion(c *collector, root *yaml.Node) bool {
	n := child(root, "version")
	if n == nil || isNull(n) {
		return true // reported as missing, with everything else
	}
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return true // reported as a wrong type
	}
	switch {
	case v > Version:
		c.add(Problem{
			Line: n.Line, Col: n.Column, Entry: "version",
			Text: fmt.Sprintf("%d is newer than this program, which knows version %d", v, Version),
			Fix:  "use a newer tidemill",
		})
	case v < 1:
		c.add(Problem{
			Line: n.Line, Col: n.Column, Entry: "version",
			Text: fmt.Sprintf("there is no version %d", v), Fix: fmt.Sprintf("write %d", Version),
		})
	default:
		return true
	}
	return false
}

// without removes a key from a mapping.
func without(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = append(n.Content[:i:i], n.Content[i+2:]...)
			return
		}
	}
}

// readSmall reads a file that a person wrote, without trusting its size.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("is not a regular file")}
	}
	if info.Size() > maxFileBytes {
		return nil, &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("is larger than %d bytes", maxFileBytes)}
	}
	return os.ReadFile(path)
}
