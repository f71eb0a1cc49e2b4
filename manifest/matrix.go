// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxCombinations bounds how many runs one file may mean.
const maxCombinations = 1000

// matrixOf returns the combinations of a run file's matrix, in the order of its sorted
// keys, the last key running fastest. Without a matrix there is one, empty.
func matrixOf(c *collector, root *yaml.Node, o LoadOptions, secrets map[string]bool) []map[string]string {
	none := []map[string]string{nil}
	n := child(root, "matrix")
	if n == nil || isNull(n) {
		return none
	}
	n = cloneTree(n)
	x := newExpander(c, o, secrets)
	x.tree(n, "matrix")
	d := newDecoder(x)
	var matrix map[string][]string
	d.decode(n, reflect.ValueOf(&matrix).Elem(), "matrix")
	total := 1
	for _, k := range slices.Sorted(maps.Keys(matrix)) {
		checkAxis(d, o, k, matrix[k])
		if total <= maxCombinations {
			total *= max(1, len(matrix[k]))
		}
	}
	if total > maxCombinations {
		d.problem("matrix", fmt.Sprintf("means more than %d runs", maxCombinations), "write several run files")
		return none
	}
	if len(c.found) > 0 {
		return none
	}
	return combine(matrix)
}

func checkAxis(d *decoder, o LoadOptions, name string, values []string) {
	entry := join("matrix", name)
	switch _, given := o.Vars[name]; {
	case !variableName.MatchString(name):
		d.problem(entry, quote(name)+" can't be a variable's name", "use letters, digits and _")
	case strings.HasPrefix(name, trialPrefix):
		d.problem(entry, "names that begin with "+trialPrefix+" are ours", "choose another name")
	case secretName(name):
		d.problem(entry, "values of a secret would be stored with the run", "list the name under agent.secrets")
	case given:
		d.problem(entry, "is also given as a variable", "give it in one place")
	case len(values) == 0:
		d.problem(entry, "has no values", "write a list such as [one, two]")
	}
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			d.problem(index(entry, i), quote(v)+" is already in the list", "write each value once")
		}
	}
}

func combine(matrix map[string][]string) []map[string]string {
	all := []map[string]string{{}}
	for _, k := range slices.Sorted(maps.Keys(matrix)) {
		var next []map[string]string
		for _, m := range all {
			for _, v := range matrix[k] {
				one := maps.Clone(m)
				one[k] = v
				next = append(next, one)
			}
		}
		all = next
	}
	return all
}
